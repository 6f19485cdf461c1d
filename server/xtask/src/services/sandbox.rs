//! The folder the servers live in, and the unprivileged user they run as: databases refuse or dislike root.

use crate::process;
use anyhow::{Context, Result};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's ids of nobody and nogroup.
const NOBODY: u32 = 65534;

/// A temporary folder, removed when dropped.
pub struct Sandbox {
    folder: PathBuf,
}

impl Sandbox {
    pub fn create() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("amends-services-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let sandbox = Self { folder };
        fs::set_permissions(&sandbox.folder, Permissions::from_mode(0o700))?;
        give_away(&sandbox.folder)?;
        Ok(sandbox)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A new folder inside, owned by the user the servers run as.
    pub fn subfolder(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        fs::set_permissions(&path, Permissions::from_mode(0o700))?;
        give_away(&path)?;
        Ok(path)
    }

    /// A command as the unprivileged user, in its own process group so that Ctrl-C reaches only us, and
    /// ended by the kernel should we be killed.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM"]);
        if process::is_root() {
            let id = NOBODY.to_string();
            command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
        }
        command.arg("--").arg(program).current_dir(&self.folder).process_group(0);
        command.env("HOME", &self.folder).env("TZ", "UTC");
        command
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("could not remove {}: {error}", self.folder.display());
        }
    }
}

fn give_away(path: &Path) -> Result<()> {
    if process::is_root() {
        chown(path, Some(NOBODY), Some(NOBODY))
            .with_context(|| format!("cannot give away {}", path.display()))?;
    }
    Ok(())
}
