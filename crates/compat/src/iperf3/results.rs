//! The results that both sides exchange at the end, as JSON.

use serde_json::{Map, Value, json};

use super::error::ProtocolError;
use super::lenient::{float, integer, text};

/// One side's view of a test.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Results {
    /// What its process used of one CPU, percent.
    pub cpu: CpuPercent,
    /// -1: it only receives; 1: it sends and knows retransmits; 0: it sends and does not.
    pub sender_has_retransmits: i64,
    /// TCP_CONGESTION of its streams.
    pub congestion_used: Option<String>,
    /// The server's output.
    pub server_output: Option<ServerOutput>,
    /// Its streams.
    pub streams: Vec<StreamResult>,
}

/// Percent of one CPU; more than 100 where several threads ran.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuPercent {
    /// All of it.
    pub total: f64,
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

/// What a server printed.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerOutput {
    /// Lines.
    Text(String),
    /// With -J.
    Json(Value),
}

/// One stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StreamResult {
    /// See [`stream_id`].
    pub id: i64,
    /// Sent or received, without the omitted time.
    pub bytes: u64,
    /// Segments sent again; none if not known.
    pub retransmits: Option<i64>,
    /// Seconds.
    pub jitter_s: f64,
    /// Datagrams lost, with the omitted time.
    pub errors: i64,
    /// Of these, in the omitted time.
    pub omitted_errors: i64,
    /// Sender: datagrams sent; receiver: highest number seen. With the omitted time.
    pub packets: i64,
    /// Of these, in the omitted time.
    pub omitted_packets: i64,
    /// Measured duration, seconds; none from iperf3 3.1.
    pub seconds: Option<f64>,
}

/// The id of the stream created as number `index` from 0: 1, 3, 4, 5 ... There is no 2.
pub fn stream_id(index: usize) -> i64 {
    let index = index as i64;
    if index == 0 { 1 } else { index + 2 }
}

impl Results {
    /// The message.
    pub fn encode(&self) -> Value {
        let mut map = Map::new();
        map.insert("cpu_util_total".into(), json!(self.cpu.total));
        map.insert("cpu_util_user".into(), json!(self.cpu.user));
        map.insert("cpu_util_system".into(), json!(self.cpu.system));
        map.insert("sender_has_retransmits".into(), json!(self.sender_has_retransmits));
        if let Some(name) = &self.congestion_used {
            map.insert("congestion_used".into(), json!(name));
        }
        match &self.server_output {
            Some(ServerOutput::Text(text)) => map.insert("server_output_text".into(), json!(text)),
            Some(ServerOutput::Json(value)) => map.insert("server_output_json".into(), value.clone()),
            None => None,
        };
        let streams = self.streams.iter().map(StreamResult::encode).collect();
        map.insert("streams".into(), Value::Array(streams));
        Value::Object(map)
    }

    /// Reads a message of any version.
    ///
    /// # Errors
    /// No JSON, or a required key is missing.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let value: Value = serde_json::from_slice(bytes).map_err(|e| unreadable(e.to_string()))?;
        let number = |key: &str| float(&value, key).ok_or_else(|| unreadable(format!("no {key}")));
        let streams = value.get("streams").and_then(Value::as_array);
        let streams = streams.ok_or_else(|| unreadable("no streams".into()))?;
        let output_text = text(&value, "server_output_text").map(ServerOutput::Text);
        let output_json = value.get("server_output_json").cloned().map(ServerOutput::Json);
        Ok(Self {
            cpu: CpuPercent {
                total: number("cpu_util_total")?,
                user: number("cpu_util_user")?,
                system: number("cpu_util_system")?,
            },
            sender_has_retransmits: integer(&value, "sender_has_retransmits")
                .ok_or_else(|| unreadable("no sender_has_retransmits".into()))?,
            congestion_used: text(&value, "congestion_used"),
            server_output: output_json.or(output_text),
            streams: streams.iter().map(StreamResult::decode).collect::<Result<_, _>>()?,
        })
    }

    /// The stream created as number `index`.
    pub fn stream(&self, index: usize) -> Option<&StreamResult> {
        self.streams.iter().find(|s| s.id == stream_id(index))
    }
}

impl StreamResult {
    fn encode(&self) -> Value {
        json!({
            "id": self.id,
            "bytes": self.bytes,
            "retransmits": self.retransmits.unwrap_or(-1),
            "jitter": self.jitter_s,
            "errors": self.errors,
            "omitted_errors": self.omitted_errors,
            "packets": self.packets,
            "omitted_packets": self.omitted_packets,
            "start_time": 0,
            "end_time": self.seconds.unwrap_or(0.0),
        })
    }

    fn decode(value: &Value) -> Result<Self, ProtocolError> {
        let number =
            |key: &str| integer(value, key).ok_or_else(|| unreadable(format!("a stream without {key}")));
        let times = (float(value, "start_time"), float(value, "end_time"));
        Ok(Self {
            id: number("id")?,
            bytes: u64::try_from(number("bytes")?).unwrap_or(0),
            retransmits: Some(number("retransmits")?).filter(|&r| r >= 0),
            jitter_s: float(value, "jitter").ok_or_else(|| unreadable("a stream without jitter".into()))?,
            errors: number("errors")?,
            omitted_errors: integer(value, "omitted_errors").unwrap_or(0),
            packets: number("packets")?,
            omitted_packets: integer(value, "omitted_packets").unwrap_or(0),
            seconds: if let (Some(start), Some(end)) = times { Some(end - start) } else { None },
        })
    }
}

fn unreadable(reason: String) -> ProtocolError {
    ProtocolError::Unreadable { what: "results", reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_leave_two_out() {
        assert_eq!((0..4).map(stream_id).collect::<Vec<_>>(), [1, 3, 4, 5]);
    }

    #[test]
    fn minus_one_of_3_12_is_read() {
        let text = br#"{"cpu_util_total":1,"cpu_util_user":0.5,"cpu_util_system":0.5,
            "sender_has_retransmits":18446744073709551615,"congestion_used":"bbr","streams":[{"id":1,"bytes":3212047040,
            "retransmits":18446744073709551615,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.000045}]}"#;
        let results = Results::decode(text).unwrap();
        assert_eq!(results.sender_has_retransmits, -1);
        assert_eq!(results.streams[0].retransmits, None);
        assert_eq!(results.streams[0].seconds, Some(1.000045));
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let stream = StreamResult {
            id: 3,
            bytes: 7 << 40,
            jitter_s: 1e-5,
            errors: 4,
            packets: 9,
            seconds: Some(2.5),
            ..StreamResult::default()
        };
        let results = Results {
            sender_has_retransmits: 1,
            server_output: Some(ServerOutput::Text("a\nb".into())),
            streams: vec![stream],
            ..Results::default()
        };
        assert_eq!(Results::decode(results.encode().to_string().as_bytes()).unwrap(), results);
        assert!(results.stream(1).is_some() && results.stream(0).is_none());
    }

    #[test]
    fn a_required_key_that_is_missing_is_named() {
        let error = Results::decode(br#"{"cpu_util_total":1}"#).unwrap_err();
        assert!(error.to_string().contains("no streams"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_results_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _either = Results::decode(&bytes);
        }
    }
}
