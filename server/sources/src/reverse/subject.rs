//! What a check takes from the record.

use crate::config::{Bound, ReverseCheck};
use crate::named::Param;
use db::Value;
use domain::evidence::Reason;
use domain::record::RecordDetail;

/// How a cell that could not be decoded begins.
const UNREADABLE: &str = "(unreadable ";

/// A record as checks and templates see it.
pub(crate) struct Subject<'a> {
    record: &'a RecordDetail,
    request: Option<serde_json::Value>,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(record: &'a RecordDetail) -> Self {
        let text = record.request.readable().and_then(|bytes| std::str::from_utf8(bytes).ok());
        Self { record, request: text.and_then(domain::json::parse) }
    }

    pub(crate) fn request(&self) -> Option<&serde_json::Value> {
        self.request.as_ref()
    }

    /// The value of a template's placeholder that is not a business column.
    pub(crate) fn named(&self, name: &str) -> Option<String> {
        self.value(&Param::try_from(name.to_owned()).ok()?)
    }

    /// The value a parameter takes from the record.
    pub(crate) fn value(&self, param: &Param) -> Option<String> {
        let row = &self.record.row;
        match param {
            Param::Key => Some(row.key.clone()),
            Param::BizNo => row.biz_no.clone().filter(|number| !number.is_empty()),
            Param::BizType => row.biz_type.clone(),
            Param::Id => match self.record.located.as_slice() {
                [only] => only.clone(),
                _ => None,
            },
            Param::IdPart(part) => self.record.located.get(part.checked_sub(1)?).cloned().flatten(),
            Param::Column(column) => {
                let fact = self.record.facts.iter().find(|(name, _)| name == column);
                // Looking for what could not be read would find nothing, which proves nothing.
                fact.map(|(_, value)| value.clone()).filter(|value| !value.starts_with(UNREADABLE))
            }
            Param::Request(pointer) => domain::json::scalar_at(self.request.as_ref()?, pointer.as_str()),
        }
    }

    /// The value as the check wants it bound; why not, when it has none or cannot be written so.
    pub(super) fn bound(&self, check: &ReverseCheck, label: &str, param: &Param) -> Result<Value, Reason> {
        let value = self.value(param).ok_or_else(|| lacks(param))?;
        let Some(steps) = check.params.get(param) else { return Ok(value.into()) };
        match steps.bound(&value) {
            Some(Bound::Text(text)) => Ok(text.into()),
            Some(Bound::Integer(number)) => Ok(number.into()),
            None => Err(Reason::NotANumber { check: label.to_owned(), param: param.to_string() }),
        }
    }
}

/// Why a parameter has no value.
pub(super) fn lacks(param: &Param) -> Reason {
    match param {
        Param::BizNo => Reason::NoBizNo,
        Param::BizType => Reason::NotConfigured { biz_type: None },
        Param::Request(pointer) => Reason::RequestLacks { pointer: pointer.as_str().to_owned() },
        Param::Key | Param::Id | Param::IdPart(_) | Param::Column(_) => {
            Reason::RecordLacks { what: param.to_string() }
        }
    }
}
