//! stub
use super::*;
pub fn day(_: Date, _: &[(Block, Vec<Fact>)]) -> String { unimplemented!() }
pub fn cards(_: Date, _: &[Card]) -> String { unimplemented!() }
pub fn long_term(_: &LongTerm) -> String { unimplemented!() }
pub fn parse_long_term(_: &str) -> Result<Vec<(String, Vec<String>)>, FieldErrors> { unimplemented!() }
pub fn week(_: &Week) -> String { unimplemented!() }
