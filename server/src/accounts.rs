//! People and tokens, as the command line makes them.

use crate::http::password;
use crate::runtime::SystemClock;
use anyhow::ensure;
use domain::audit::Draft;
use domain::clock::{Clock, Ids};
use domain::ports::{User, UserStore};
use domain::roles::Role;
use sha2::{Digest, Sha256};

/// The shortest password, in characters.
pub const PASSWORD_MIN: usize = 8;
const NAME_MAX: usize = 64;
/// Who the audit trail names for what is done on the command line.
const COMMAND_LINE: &str = "command-line";

/// Refuses names that would be mistaken for another one or break a line.
pub fn check_name(name: &str) -> anyhow::Result<()> {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '@');
    let long_enough = (1..=NAME_MAX).contains(&name.chars().count());
    ensure!(
        long_enough && name.chars().all(plain),
        "a name is 1 to {NAME_MAX} letters, digits, dots, dashes, underscores or @"
    );
    Ok(())
}

/// Adds or replaces a user. Hashing takes a while on purpose.
pub async fn put_user(users: &dyn UserStore, name: &str, role: Role, password: &str) -> anyhow::Result<()> {
    let clear = password.to_owned();
    let password_hash = tokio::task::spawn_blocking(move || password::hash(&clear)).await??;
    let before = users.user(name).await?;
    let verb = if before.is_some() { "user.changed" } else { "user.added" };
    let draft = Draft {
        before: before.map(|user| format!("{} {}", user.name, user.role)),
        after: Some(format!("{name} {role}")),
        ..Draft::new(SystemClock.now(), COMMAND_LINE, verb)
    };
    users.put_user(&User { name: name.to_owned(), role, password_hash }, &draft).await?;
    Ok(())
}

/// Makes the user sign in with this password and have this role; touches nothing when that is so already.
pub async fn ensure_user(
    users: &dyn UserStore,
    name: &str,
    role: Role,
    password: &str,
) -> anyhow::Result<()> {
    if let Some(user) = users.user(name).await?.filter(|user| user.role == role) {
        let clear = password.to_owned();
        if tokio::task::spawn_blocking(move || password::verify(&clear, &user.password_hash)).await? {
            return Ok(());
        }
    }
    put_user(users, name, role, password).await
}

/// Creates a bearer token and stores its digest; the answer is the only copy.
pub async fn create_token(
    users: &dyn UserStore,
    ids: &dyn Ids,
    name: &str,
    role: Role,
) -> anyhow::Result<String> {
    let token = format!("amends_{}{}", ids.next(), ids.next());
    let digest = hex::encode(Sha256::digest(token.as_bytes()));
    let draft = Draft {
        after: Some(format!("{name} {role}")),
        ..Draft::new(SystemClock.now(), COMMAND_LINE, "token.created")
    };
    users.put_token(&digest, name, role, &draft).await?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_are_plain_words() {
        for good in ["mei", "ops.bot-2", "li_wei@example.com", "王梅"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a\nb", "<b>", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
