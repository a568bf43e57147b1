//! What should happen and is looked at: schedules that something else runs, and the platform itself.

mod alarms;
pub mod pings;
pub mod watchdog;
pub mod witness;
