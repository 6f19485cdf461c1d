//! Who may do what. Four roles, each holding everything the one below it holds.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a person or token is, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Viewer,
    Operator,
    Approver,
    Admin,
}

impl Role {
    pub const ALL: [Role; 4] = [Role::Viewer, Role::Operator, Role::Approver, Role::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Approver => "approver",
            Role::Admin => "admin",
        }
    }

    pub fn may(self, permission: Permission) -> bool {
        self >= permission.least_role()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Role::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| {
            Error::invalid(format!("{text:?} is no role; write viewer, operator, approver or admin"))
        })
    }
}

/// One right, named for what it lets a person do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Read records, rates, alerts, sources and the audit trail; bodies stay masked.
    Read,
    /// Run reverse checks.
    ReverseCheck,
    /// Settle records: mark succeeded, mark timed out, replay.
    Compensate,
    /// Acknowledge or silence a firing alert.
    AcknowledgeAlert,
    /// See request and response bodies unmasked; audited.
    RevealBodies,
    /// Create, change and delete alert rules.
    EditAlertRules,
    /// Drive the demo shop's faults.
    DriveDemo,
    /// Report counters (producers' tokens).
    ReportEvents,
}

impl Permission {
    pub const ALL: [Permission; 8] = [
        Permission::Read,
        Permission::ReverseCheck,
        Permission::Compensate,
        Permission::AcknowledgeAlert,
        Permission::RevealBodies,
        Permission::EditAlertRules,
        Permission::DriveDemo,
        Permission::ReportEvents,
    ];

    pub fn least_role(self) -> Role {
        match self {
            Permission::Read => Role::Viewer,
            Permission::ReverseCheck
            | Permission::Compensate
            | Permission::AcknowledgeAlert
            | Permission::DriveDemo
            | Permission::ReportEvents => Role::Operator,
            Permission::RevealBodies => Role::Approver,
            Permission::EditAlertRules => Role::Admin,
        }
    }
}

/// The signed-in person, token or background task on whose behalf a service acts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub name: String,
    pub role: Role,
}

impl Actor {
    pub fn new(name: impl Into<String>, role: Role) -> Self {
        Self { name: name.into(), role }
    }

    /// `Ok` when the role holds the permission; the refusal names the least role that does.
    pub fn require(&self, permission: Permission) -> Result<()> {
        if self.role.may(permission) {
            return Ok(());
        }
        Err(Error::Forbidden { role: self.role, least: permission.least_role() })
    }
}
