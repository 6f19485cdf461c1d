//! How known payment channels notify: when they send again, and what they take for an acknowledgement. The schedules
//! are those of the channels' documentation; a load test can play them.

use std::str::FromStr;
use std::time::Duration;

use axum::http::StatusCode;

use super::Ack;

/// A payment channel whose rules are built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Profile {
    /// WeChat Pay, API v3.
    WechatPay,
    Alipay,
}

const SECOND: u64 = 1;
const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

/// 15s/15s/30s/3m/10m/20m/30m/30m/30m/60m/3h/3h/3h/6h/6h.
const WECHAT_PAY: [Duration; 15] = seconds([
    15 * SECOND,
    15 * SECOND,
    30 * SECOND,
    3 * MINUTE,
    10 * MINUTE,
    20 * MINUTE,
    30 * MINUTE,
    30 * MINUTE,
    30 * MINUTE,
    60 * MINUTE,
    3 * HOUR,
    3 * HOUR,
    3 * HOUR,
    6 * HOUR,
    6 * HOUR,
]);

/// 4m/10m/10m/1h/2h/6h/15h.
const ALIPAY: [Duration; 7] =
    seconds([4 * MINUTE, 10 * MINUTE, 10 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 15 * HOUR]);

const fn seconds<const N: usize>(seconds: [u64; N]) -> [Duration; N] {
    let mut spans = [Duration::ZERO; N];
    let mut at = 0;
    while at < N {
        spans[at] = Duration::from_secs(seconds[at]);
        at += 1;
    }
    spans
}

impl Profile {
    pub const ALL: [Profile; 2] = [Profile::WechatPay, Profile::Alipay];

    /// The word for configuration files and command lines.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::WechatPay => "wechat_pay",
            Profile::Alipay => "alipay",
        }
    }

    /// The pauses before the second, third … sending of a notification that was not acknowledged.
    pub fn schedule(self) -> &'static [Duration] {
        match self {
            Profile::WechatPay => &WECHAT_PAY,
            Profile::Alipay => &ALIPAY,
        }
    }

    /// Whether the channel takes this answer for an acknowledgement.
    pub fn accepts(self, status: StatusCode, body: &[u8]) -> bool {
        match self {
            // The documentation names both; some gateways before it look at the code as well.
            Profile::WechatPay => {
                matches!(status, StatusCode::OK | StatusCode::NO_CONTENT) && !says_failure(body)
            }
            Profile::Alipay => status.is_success() && body == b"success",
        }
    }

    /// What acknowledges.
    pub fn ack(self) -> Ack {
        match self {
            Profile::WechatPay => Ack::new("application/json", r#"{"code":"SUCCESS","message":"成功"}"#),
            Profile::Alipay => Ack::new("text/plain; charset=utf-8", "success"),
        }
    }

    /// What asks to send again.
    pub fn nack(self) -> Ack {
        match self {
            Profile::WechatPay => Ack::new("application/json", r#"{"code":"FAIL","message":"失败"}"#),
            Profile::Alipay => Ack::new("text/plain; charset=utf-8", "fail"),
        }
    }
}

fn says_failure(body: &[u8]) -> bool {
    let answer: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    answer["code"].as_str().is_some_and(|code| code != "SUCCESS")
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(word: &str) -> Result<Profile, String> {
        Profile::ALL.into_iter().find(|profile| profile.as_str() == word).ok_or_else(|| {
            let words = Profile::ALL.map(Profile::as_str).join(" or ");
            format!("{word:?} is no known channel; write {words}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a8_schedules_are_those_of_the_documentation() {
        let minutes = |profile: Profile| profile.schedule().iter().sum::<Duration>().as_secs() / 60;
        assert_eq!(minutes(Profile::WechatPay), 24 * 60 + 4);
        assert_eq!(minutes(Profile::Alipay), 24 * 60 + 24);
        assert_eq!(Profile::WechatPay.schedule()[..3], [15, 15, 30].map(Duration::from_secs));
        assert_eq!(Profile::Alipay.schedule()[0], Duration::from_secs(240));
    }

    #[test]
    fn c36_only_the_exact_acknowledgement_counts() {
        for profile in Profile::ALL {
            assert_eq!(profile.as_str().parse(), Ok(profile));
            assert!(profile.accepts(StatusCode::OK, &profile.ack().body));
            assert!(!profile.accepts(StatusCode::OK, &profile.nack().body));
            assert!(
                !profile.accepts(StatusCode::CONFLICT, &profile.ack().body) || profile == Profile::Alipay
            );
        }
        assert!(Profile::WechatPay.accepts(StatusCode::NO_CONTENT, b""));
        assert!(!Profile::WechatPay.accepts(StatusCode::CREATED, b""));
        for odd in [&b"success\n"[..], b"SUCCESS", b"\"success\"", b""] {
            assert!(!Profile::Alipay.accepts(StatusCode::OK, odd));
        }
    }
}
