//! Steps that Redis takes as one.

use redis::ToRedisArgs;

/// A Lua script; sent once per server, called by its hash after that. All its keys must be named, for clusters.
pub struct Script(pub(crate) redis::Script);

impl Script {
    pub fn new(code: &str) -> Script {
        Script(redis::Script::new(code))
    }

    /// A call with the keys it touches and further arguments.
    pub(crate) fn call<'s>(&'s self, keys: &[&str], args: &[&dyn ErasedArg]) -> redis::ScriptInvocation<'s> {
        let mut call = self.0.prepare_invoke();
        for key in keys {
            call.key(*key);
        }
        for arg in args {
            call.arg(arg.bytes());
        }
        call
    }
}

/// One argument of a script as the bytes Redis gets.
pub trait ErasedArg: Sync {
    fn bytes(&self) -> Vec<u8>;
}

impl<T: ToRedisArgs + Sync> ErasedArg for T {
    fn bytes(&self) -> Vec<u8> {
        self.to_redis_args().concat()
    }
}
