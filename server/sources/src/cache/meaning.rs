//! From an entry's value to the states it can mean.

use crate::config::{CacheConfig, CacheFormat, CacheValues, Scalar};
use domain::record::State;

/// Where the native package of many services keeps it.
const STATUS: &str = "/status";
/// An unmapped spelling longer than this is no state, and may be anything.
const LONGEST_NATIVE: usize = 64;

/// How entries are read.
pub(super) struct Meaning {
    place: Place,
    values: CacheValues,
    otherwise: Option<State>,
}

/// Where in an entry the state is.
enum Place {
    Whole,
    Pointer(String),
    Field(String),
}

/// The spelling of a state, where it is one, and every state it can mean.
type Said = (Option<String>, Vec<State>);

impl Meaning {
    pub(super) fn of(config: &CacheConfig) -> Self {
        let state = &config.state;
        let place = match config.format {
            CacheFormat::Text => Place::Whole,
            CacheFormat::Json => {
                Place::Pointer(state.pointer.as_ref().map_or(STATUS, |pointer| pointer.as_str()).to_owned())
            }
            CacheFormat::Hash => Place::Field(state.field.clone().unwrap_or_default()),
        };
        let said = state.values != CacheValues::default() || state.otherwise.is_some();
        let values = if said { state.values.clone() } else { own_words() };
        Self { place, values, otherwise: state.otherwise }
    }

    /// The hash field that holds the state.
    pub(super) fn field(&self) -> Option<&str> {
        match &self.place {
            Place::Field(field) => Some(field),
            Place::Whole | Place::Pointer(_) => None,
        }
    }

    /// What a whole value says. Errors: why it cannot be read as configured.
    pub(super) fn of_value(&self, value: &[u8]) -> Result<Said, String> {
        match (&self.place, std::str::from_utf8(value)) {
            (Place::Pointer(pointer), Ok(text)) => {
                let document = domain::json::parse(text).ok_or("the value is no JSON")?;
                let native = domain::json::scalar_at(&document, pointer);
                Ok(native.map_or_else(|| (None, self.other()), |native| self.of_native(&native)))
            }
            (Place::Pointer(_), Err(_)) => Err("the value is no JSON".into()),
            (_, Ok(text)) => {
                let (native, means) = self.of_native(text);
                // A text that is no spelling of a state is a response, and not for every eye.
                Ok((native.filter(|_| self.is_named(text)), means))
            }
            (_, Err(_)) => Ok((None, self.other())),
        }
    }

    /// What one spelling says.
    pub(super) fn of_native(&self, native: &str) -> Said {
        let named = self.values.each().into_iter();
        let means: Vec<State> =
            named.filter(|(_, values)| holds(values, native)).map(|(state, _)| state).collect();
        let means = if means.is_empty() { self.other() } else { means };
        (Some(native.to_owned()).filter(|native| native.len() <= LONGEST_NATIVE), means)
    }

    fn is_named(&self, text: &str) -> bool {
        self.values.each().into_iter().any(|(_, values)| holds(values, text))
    }

    fn other(&self) -> Vec<State> {
        self.otherwise.into_iter().collect()
    }
}

fn holds(values: &[Scalar], native: &str) -> bool {
    values.iter().any(|value| value.is(native))
}

fn own_words() -> CacheValues {
    let word = |state: State| vec![Scalar::Text(state.to_string())];
    CacheValues {
        processing: word(State::Processing),
        success: word(State::Success),
        failed: word(State::Failed),
        timeout: word(State::Timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::{Failed, Processing, Success, Timeout};

    fn meaning(toml: &str) -> Meaning {
        let text = format!("url = \"redis://localhost\"\nkey = \"{{key}}\"\n{toml}");
        Meaning::of(&toml::from_str(&text).unwrap())
    }

    fn means(meaning: &Meaning, value: &str) -> Vec<State> {
        meaning.of_value(value.as_bytes()).unwrap().1
    }

    #[test]
    fn k1_k4_a_json_entry_names_its_state_at_a_pointer() {
        let k1 = meaning(
            "state = { pointer = \"/status\", values = { PROCESSING = [\"INPROGRESS\"], SUCCESS = [\"COMPLETED\"], FAILED = [\"EXPIRED\"], TIMEOUT = [\"EXPIRED\"] } }",
        );
        assert_eq!(
            means(&k1, r#"{"status":"INPROGRESS","in_progress_expiration":1700000000000}"#),
            [Processing]
        );
        assert_eq!(means(&k1, r#"{"status":"COMPLETED","data":"{}"}"#), [Success]);
        assert_eq!(means(&k1, r#"{"status":"EXPIRED"}"#), [Failed, Timeout]);
        assert!(means(&k1, r#"{"status":"inprogress"}"#).is_empty(), "case is part of the value");
        assert!(means(&k1, r#"{"other":1}"#).is_empty());
        assert!(k1.of_value(b"INPROGRESS").is_err() && k1.of_value(b"\xff\x00").is_err());
        assert_eq!(means(&meaning(""), r#"{"status":"TIMEOUT"}"#), [Timeout]);
    }

    #[test]
    fn k2_an_empty_text_is_in_progress_and_everything_else_is_the_response() {
        let k2 = meaning(
            "format = \"text\"\nstate = { values = { PROCESSING = [\"\"] }, otherwise = \"SUCCESS\" }",
        );
        assert_eq!(k2.of_value(b"").unwrap(), (Some(String::new()), vec![Processing]));
        assert_eq!(
            k2.of_value(br#"{"card":"6222021234567894"}"#).unwrap(),
            (None, vec![Success]),
            "a response is no spelling of a state"
        );
        assert_eq!(k2.of_value(b"\xff\xfe").unwrap(), (None, vec![Success]));
    }

    #[test]
    fn k6_digits_are_states() {
        let k6 = meaning("format = \"text\"\nstate = { values = { PROCESSING = [0], SUCCESS = [1] } }");
        assert_eq!((means(&k6, "0"), means(&k6, "1")), (vec![Processing], vec![Success]));
        assert!(means(&k6, "01").is_empty() && means(&k6, "").is_empty());
    }
}
