//! How a model chooses among the next words, if a client asks for more than the provider's defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// What a client asks for.
pub type Sampling = BTreeMap<SamplingParameter, Number>;

/// A parameter, under its name in the Chat Completions format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SamplingParameter {
    Temperature,
    TopP,
    PresencePenalty,
    FrequencyPenalty,
    Seed,
}

impl SamplingParameter {
    pub const ALL: [Self; 5] =
        [Self::Temperature, Self::TopP, Self::PresencePenalty, Self::FrequencyPenalty, Self::Seed];

    /// As in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Temperature => "temperature",
            Self::TopP => "top_p",
            Self::PresencePenalty => "presence_penalty",
            Self::FrequencyPenalty => "frequency_penalty",
            Self::Seed => "seed",
        }
    }

    /// The value that is the same as none.
    const fn default(self) -> Option<f64> {
        match self {
            Self::Temperature | Self::TopP => Some(1.0),
            Self::PresencePenalty | Self::FrequencyPenalty => Some(0.0),
            Self::Seed => None,
        }
    }

    const fn limits(self) -> (f64, f64) {
        match self {
            Self::Temperature => (0.0, 2.0),
            Self::TopP => (0.0, 1.0),
            Self::PresencePenalty | Self::FrequencyPenalty => (-2.0, 2.0),
            Self::Seed => (f64::MIN, f64::MAX),
        }
    }

    /// Reads a value. `None` if it is absent, or the same as absent.
    ///
    /// # Errors
    /// What it must be.
    pub fn read(self, value: &Value) -> Result<Option<Number>, String> {
        let number = match value {
            Value::Null => return Ok(None),
            Value::Number(number) => number,
            _ => return Err(self.must_be()),
        };
        let (least, most) = self.limits();
        let read =
            number.as_f64().filter(|read| (least..=most).contains(read)).ok_or_else(|| self.must_be())?;
        if self == Self::Seed && !number.is_i64() {
            return Err(self.must_be());
        }
        let is_default = self.default().is_some_and(|default| (default - read).abs() < f64::EPSILON);
        Ok((!is_default).then(|| number.clone()))
    }

    fn must_be(self) -> String {
        match self {
            Self::Seed => "must be a whole number of 64 bits".to_owned(),
            _ => {
                let (least, most) = self.limits();
                format!("must be a number from {least} to {most}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_limits_and_defaults() {
        use SamplingParameter::{FrequencyPenalty, PresencePenalty, Seed, Temperature, TopP};
        for (parameter, value, is_sent) in [
            (Temperature, json!(0), Ok(true)),
            (Temperature, json!(1.0), Ok(false)),
            (Temperature, json!(2), Ok(true)),
            (Temperature, json!(2.1), Err("must be a number from 0 to 2")),
            (Temperature, json!("hot"), Err("must be a number from 0 to 2")),
            (TopP, json!(0.9), Ok(true)),
            (TopP, json!(1), Ok(false)),
            (TopP, json!(-0.1), Err("must be a number from 0 to 1")),
            (PresencePenalty, json!(0), Ok(false)),
            (PresencePenalty, json!(-2), Ok(true)),
            (FrequencyPenalty, json!(0.5), Ok(true)),
            (FrequencyPenalty, json!(3), Err("must be a number from -2 to 2")),
            (Seed, json!(0), Ok(true)),
            (Seed, json!(1.5), Err("must be a whole number of 64 bits")),
            (Seed, json!(u64::MAX), Err("must be a whole number of 64 bits")),
            (Seed, json!([]), Err("must be a whole number of 64 bits")),
            (Seed, Value::Null, Ok(false)),
        ] {
            let read = parameter.read(&value);
            let what = format!("{parameter:?} {value}");
            match is_sent {
                Ok(is_sent) => assert_eq!(read.unwrap().is_some(), is_sent, "{what}"),
                Err(told) => assert_eq!(read.unwrap_err(), told, "{what}"),
            }
        }
        for parameter in SamplingParameter::ALL {
            assert_eq!(json!(parameter), parameter.name());
        }
    }
}
