//! What is done to a parameter before it is bound: how the business side writes the same number.

use serde::Deserialize;

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Without blanks around it.
    Trim,
    Lower,
    Upper,
    /// `0012` looks for `12`.
    StripZeros,
    /// Bound as a whole number; anything but plain digits makes the check unavailable, for nothing is coerced.
    Integer,
}

/// Steps in order: `"integer"` or `["trim", "strip_zeros", "integer"]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawSteps")]
pub struct Steps(Vec<Step>);

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"trim\", \"lower\", \"upper\", \"strip_zeros\", \"integer\" or a list of these"
)]
enum RawSteps {
    One(Step),
    Many(Vec<Step>),
}

impl TryFrom<RawSteps> for Steps {
    type Error = String;

    fn try_from(raw: RawSteps) -> Result<Self, String> {
        let steps = match raw {
            RawSteps::One(step) => vec![step],
            RawSteps::Many(steps) => steps,
        };
        match steps.iter().position(|step| *step == Step::Integer) {
            Some(at) if at + 1 < steps.len() => {
                Err("integer is the last step: afterwards there is no text".into())
            }
            _ => Ok(Self(steps)),
        }
    }
}

/// A value ready to be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    Text(String),
    Integer(i64),
}

impl Steps {
    /// The value as the business side writes it; `None` when a number is needed and it is none.
    pub fn bound(&self, value: &str) -> Option<Bound> {
        let text = self.written(value);
        if self.0.last() != Some(&Step::Integer) {
            return Some(Bound::Text(text));
        }
        // Exactly as an integer column shows it: no sign but -, no zeros in front.
        text.parse::<i64>().ok().filter(|number| number.to_string() == text).map(Bound::Integer)
    }

    /// The value after every step, as text.
    pub fn written(&self, value: &str) -> String {
        self.0.iter().fold(value.to_owned(), |text, step| match step {
            Step::Trim => text.trim().to_owned(),
            Step::Lower => text.to_lowercase(),
            Step::Upper => text.to_uppercase(),
            Step::StripZeros => match text.trim_start_matches('0') {
                "" if text.is_empty() => text,
                "" => "0".to_owned(),
                rest => rest.to_owned(),
            },
            Step::Integer => text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(text: &str) -> Steps {
        #[derive(Deserialize)]
        struct Holder {
            steps: Steps,
        }
        toml::from_str::<Holder>(&format!("steps = {text}")).unwrap().steps
    }

    #[test]
    fn c67_only_plain_digits_are_a_number() {
        let integer = steps("\"integer\"");
        assert_eq!(integer.bound("12"), Some(Bound::Integer(12)));
        for text in ["0012", "12abc", "+12", " 12", "", "1e3", "９", "9223372036854775808"] {
            assert_eq!(integer.bound(text), None, "{text}");
        }
        let padded = steps("[\"trim\", \"strip_zeros\", \"integer\"]");
        assert_eq!(padded.bound(" 0012 "), Some(Bound::Integer(12)));
        assert_eq!(padded.bound("000"), Some(Bound::Integer(0)));
        assert_eq!(padded.bound(""), None);
        assert_eq!(steps("[\"upper\"]").bound("a-1"), Some(Bound::Text("A-1".into())));
    }

    #[test]
    fn an_integer_is_the_end_of_the_steps() {
        assert!(Steps::try_from(RawSteps::Many(vec![Step::Integer, Step::Trim])).is_err());
    }
}
