//! The interfaces for programs. Each endpoint group has a file; the OpenAPI document is made from the routes themselves.

mod openapi;
pub(super) mod v1;

pub use openapi::router;
