//! One keep-alive HTTP connection. A request is one write and the response is read whole, so the client adds almost no time.

use crate::fail;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub struct Connection {
    stream: TcpStream,
    host: String,
    buffer: Vec<u8>,
}

/// A response: its head and its body.
pub struct Answer {
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value))
    }
}

impl Connection {
    pub async fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap_or_else(|error| fail(&error.to_string()));
        let _ = stream.set_nodelay(true);
        Self { stream, host: address.to_owned(), buffer: Vec::with_capacity(64 << 10) }
    }

    pub async fn get(&mut self, path: &str) {
        self.ask("GET", path, "", b"").await;
    }

    pub async fn post(&mut self, path: &str, body: &Value) -> Value {
        let answer = self.ask("POST", path, "Content-Type: application/json\r\n", body.to_string().as_bytes()).await;
        serde_json::from_slice(&answer.body).unwrap_or_else(|error| fail(&format!("{path} did not answer with JSON: {error}")))
    }

    /// `headers` are whole lines.
    pub async fn ask(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Length: {}\r\n\r\n", self.host, body.len()).into_bytes();
        request.extend_from_slice(body);
        let answer = match self.stream.write_all(&request).await {
            Ok(()) => self.answer().await,
            Err(error) => Err(error),
        };
        let answer = answer.unwrap_or_else(|error| fail(&format!("{path}: {error}")));
        if !answer.head.starts_with("HTTP/1.1 2") {
            fail(&format!("{path} answered {}\n{}", answer.head, String::from_utf8_lossy(&answer.body)));
        }
        answer
    }

    async fn answer(&mut self) -> std::io::Result<Answer> {
        let head_end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end + 4;
            }
            self.read().await?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).into_owned();
        self.buffer.drain(..head_end);
        let mut answer = Answer { head, body: Vec::new() };
        match answer.header("content-length").and_then(|length| length.trim().parse().ok()) {
            Some(length) => answer.body = self.take(length).await?,
            None if answer.header("transfer-encoding").is_some() => answer.body = self.chunks().await?,
            None => {}
        }
        Ok(answer)
    }

    async fn chunks(&mut self) -> std::io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line_end = loop {
                if let Some(end) = find(&self.buffer, b"\r\n") {
                    break end;
                }
                self.read().await?;
            };
            let length =
                usize::from_str_radix(String::from_utf8_lossy(&self.buffer[..line_end]).trim(), 16).map_err(std::io::Error::other)?;
            self.buffer.drain(..line_end + 2);
            body.extend(self.take(length).await?);
            self.take(2).await?;
            if length == 0 {
                return Ok(body);
            }
        }
    }

    async fn take(&mut self, length: usize) -> std::io::Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.read().await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    async fn read(&mut self) -> std::io::Result<()> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
