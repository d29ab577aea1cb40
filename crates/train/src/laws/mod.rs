//! What members of a registry have to keep, whoever writes them: functions that panic, with what was expected and
//! found, where a law is broken. The tests of this crate run them over the registries.

pub mod methods;
pub mod selections;
