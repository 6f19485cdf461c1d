//! Passwords as argon2id PHC strings. Both functions take tens of milliseconds and 19 MiB on purpose: call them on a
//! blocking thread.

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use domain::{Error, Result};
use std::sync::mpsc::{Sender, channel};
use std::sync::{LazyLock, Mutex, PoisonError};

/// The longest password, in bytes: hashing must not become a way to keep the server busy.
pub const MAX_BYTES: usize = 1024;

/// The PHC string of a password, freshly salted. `Invalid` when it is empty or longer than [`MAX_BYTES`].
pub fn hash(password: &str) -> Result<String> {
    if password.is_empty() || password.len() > MAX_BYTES {
        return Err(Error::invalid(format!("a password is 1 to {MAX_BYTES} bytes")));
    }
    let password = password.to_owned();
    one_at_a_time(move || {
        Argon2::default().hash_password(password.as_bytes()).map(|hash| hash.to_string()).ok()
    })
    .flatten()
    .ok_or_else(|| Error::internal("The password could not be hashed; try again."))
}

/// Whether the password belongs to the PHC string; a string that cannot be read belongs to no password.
pub fn verify(password: &str, phc: &str) -> bool {
    if password.len() > MAX_BYTES {
        return false;
    }
    let (password, phc) = (password.to_owned(), phc.to_owned());
    let belongs = move || {
        PasswordHash::new(&phc)
            .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
    };
    one_at_a_time(belongs).unwrap_or(false)
}

type Work = Box<dyn FnOnce() + Send>;

/// Hashes on one thread for the whole process: a crowd signing in costs 19 MiB once, and the allocator keeps it once.
fn one_at_a_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static WORKER: LazyLock<Mutex<Sender<Work>>> = LazyLock::new(|| {
        let (sender, receiver) = channel::<Work>();
        std::thread::spawn(move || receiver.into_iter().for_each(|work| work()));
        Mutex::new(sender)
    });
    let (reply, answer) = channel();
    // Nobody waits any more: then the answer is not needed.
    let work = Box::new(move || drop(reply.send(work())));
    WORKER.lock().unwrap_or_else(PoisonError::into_inner).send(work).ok()?;
    answer.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_opens_its_own_hash_and_no_other() {
        let phc = hash("correct-horse-battery").unwrap();
        assert!(phc.starts_with("$argon2id$"));
        assert!(verify("correct-horse-battery", &phc));
        assert!(!verify("correct-horse-batterz", &phc));
        assert_ne!(phc, hash("correct-horse-battery").unwrap());
    }

    #[test]
    fn nonsense_opens_nothing() {
        assert!(!verify("", "") && !verify("x", "$argon2id$") && !verify(&"x".repeat(MAX_BYTES + 1), "x"));
        assert!(hash("").is_err() && hash(&"x".repeat(MAX_BYTES + 1)).is_err());
    }
}
