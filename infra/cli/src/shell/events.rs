//! Reads a stream of server-sent events.

use std::io::{self, BufRead, BufReader, Read};

use serde_json::Value;

/// The longest event that is read, in bytes. The platform's events have at most some hundred kilobytes.
const LONGEST: usize = 8 * 1024 * 1024;

/// An event of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Absent for heartbeats.
    pub id: Option<u64>,
    pub name: String,
    pub data: Value,
}

/// The events of one connection.
pub struct Events<R> {
    reader: BufReader<R>,
}

impl<R: Read> Events<R> {
    #[must_use]
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::new(reader) }
    }

    /// The next complete event. `None` if the connection has ended.
    ///
    /// # Errors
    /// If the connection breaks, or an event is too long.
    pub fn next(&mut self) -> io::Result<Option<Event>> {
        let (mut id, mut name, mut data) = (None, String::new(), String::new());
        loop {
            let mut line = Vec::new();
            (&mut self.reader).take(LONGEST as u64).read_until(b'\n', &mut line)?;
            // An event without the empty line after it was cut off.
            if line.pop() != Some(b'\n') {
                return Ok(None);
            }
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            let line = String::from_utf8_lossy(&line);
            if line.is_empty() {
                if name.is_empty() && data.is_empty() {
                    continue;
                }
                let data = serde_json::from_str(&data).unwrap_or_default();
                return Ok(Some(Event { id, name, data }));
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" => id = value.parse().ok(),
                "event" => name = value.to_owned(),
                "data" => {
                    if !data.is_empty() {
                        data.push('\n');
                    }
                    data.push_str(value);
                }
                // Comments and fields of later versions.
                _ => {}
            }
            if name.len() + data.len() > LONGEST {
                return Err(io::Error::other("the server sent an event that is too long"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Vec<Event> {
        let mut events = Events::new(text.as_bytes());
        std::iter::from_fn(|| events.next().unwrap()).collect()
    }

    #[test]
    fn events_are_read_as_they_are_written() {
        let event = |id, name: &str, data| Event { id, name: name.to_owned(), data };
        assert_eq!(
            read(
                "id: 1\nevent: a\ndata: {\"text\":\ndata: \"x\"}\n\n: comment\n\nevent:b\r\ndata:3\r\n\r\nretry: 5\nid: z\ndata: {\n\n"
            ),
            [
                event(Some(1), "a", json!({"text": "x"})),
                event(None, "b", json!(3)),
                event(None, "", Value::Null)
            ]
        );
        assert_eq!(read(""), []);
        assert_eq!(read("id: 1\nevent: a\ndata: 1\n"), []);
        assert_eq!(read("id: 1\nevent: a\ndata: 1\n\nid: 2\nevent: cut"), [event(Some(1), "a", json!(1))]);
    }

    #[test]
    fn an_endless_event_is_not_read() {
        let mut endless = Events::new(io::repeat(b'x'));
        assert_eq!(endless.next().unwrap(), None);
        let line = format!("data: {}\n", "x".repeat(1_000_000));
        let mut endless = Events::new(line.as_bytes().chain(line.repeat(10).leak().as_bytes()));
        assert!(endless.next().is_err());
    }
}
