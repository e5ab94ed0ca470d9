//! A proxy between a store and its server that injects the faults of a bad network or server.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The connection is reset before anything is read.
    Refuse,
    /// 503 with the body that S3 sends under overload.
    Busy,
    /// 404 from a server that is not S3.
    NoSuchPage,
    /// 403, as with wrong credentials.
    Forbidden,
    /// The request is read and never answered.
    Silence,
    /// Half of the request's body is read, then the connection is reset.
    CutRequest,
    /// Half of the response body is sent, then the connection is reset.
    CutAnswer,
    /// Half of the response body is sent, and nothing more.
    StallAnswer,
    /// One bit of the response body is flipped.
    FlipAnswer,
    /// The response body is truncated, with a matching length.
    ShortAnswer,
}

pub struct Proxy {
    port: u16,
    plan: Arc<Mutex<Plan>>,
}

struct Plan {
    fault: Fault,
    /// How many more requests it affects.
    times: usize,
    requests: usize,
}

impl Plan {
    fn next(&mut self) -> Fault {
        self.requests += 1;
        match self.times.checked_sub(1) {
            Some(times) => {
                self.times = times;
                self.fault
            }
            None => Fault::None,
        }
    }
}

impl Proxy {
    pub fn start(server_port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("port");
        let port = listener.local_addr().expect("address").port();
        let plan = Arc::new(Mutex::new(Plan { fault: Fault::None, times: 0, requests: 0 }));
        let plan_of_server = plan.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let plan = plan_of_server.clone();
                // An error here means that the client has disconnected.
                std::thread::spawn(move || serve(client, server_port, &plan).ok());
            }
        });
        Self { port, plan }
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Applies the fault to this many further requests.
    pub fn do_times(&self, fault: Fault, times: usize) {
        *self.plan.lock().expect("plan") = Plan { fault, times, requests: 0 };
    }

    pub fn do_always(&self, fault: Fault) {
        self.do_times(fault, usize::MAX);
    }

    /// Number of requests since the fault was set.
    pub fn requests(&self) -> usize {
        self.plan.lock().expect("plan").requests
    }
}

/// One request on one connection.
fn serve(mut client: TcpStream, server_port: u16, plan: &Mutex<Plan>) -> std::io::Result<()> {
    let peeked = client.peek(&mut [0])?;
    if peeked == 0 {
        return Ok(());
    }
    let fault = plan.lock().expect("plan").next();
    if fault == Fault::Refuse {
        return reset(client);
    }
    let request = Message::read_head(&mut client)?;
    let body_bytes = request.body_bytes();
    if fault == Fault::CutRequest {
        client.read_exact(&mut vec![0; body_bytes / 2])?;
        return reset(client);
    }
    let mut body = vec![0; body_bytes];
    client.read_exact(&mut body)?;
    match fault {
        Fault::Busy => answer(&mut client, "503 Slow Down", "<Error><Code>SlowDown</Code></Error>"),
        Fault::NoSuchPage => answer(&mut client, "404 Not Found", "<html>There is nothing here.</html>"),
        Fault::Forbidden => answer(&mut client, "403 Forbidden", "<Error><Code>InvalidAccessKeyId</Code></Error>"),
        Fault::Silence => wait_until_closed(client),
        _ => {
            let mut server = TcpStream::connect(("127.0.0.1", server_port))?;
            server.write_all(&[request.head_with("connection", "close").as_bytes(), &body].concat())?;
            let head = Message::read_head(&mut server)?;
            let mut body = Vec::new();
            server.read_to_end(&mut body)?;
            pass_on(client, head, body, fault)
        }
    }
}

fn pass_on(mut client: TcpStream, head: Message, mut body: Vec<u8>, fault: Fault) -> std::io::Result<()> {
    let half = body.len() / 2;
    let mut head_text = head.head_with("connection", "close");
    match fault {
        Fault::FlipAnswer => body.iter_mut().skip(half).take(1).for_each(|byte| *byte ^= 1),
        Fault::ShortAnswer => {
            body.truncate(half);
            head_text = Message { head: head_text }.head_with("content-length", &half.to_string());
        }
        _ => {}
    }
    client.write_all(head_text.as_bytes())?;
    if matches!(fault, Fault::CutAnswer | Fault::StallAnswer) {
        client.write_all(&body[..half])?;
        return if fault == Fault::CutAnswer { reset(client) } else { wait_until_closed(client) };
    }
    client.write_all(&body)
}

fn answer(client: &mut TcpStream, status: &str, body: &str) -> std::io::Result<()> {
    write!(client, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn wait_until_closed(mut client: TcpStream) -> std::io::Result<()> {
    while client.read(&mut [0; 1024])? > 0 {}
    Ok(())
}

fn reset(client: TcpStream) -> std::io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO))?)
}

/// The head of a request or a response.
struct Message {
    head: String,
}

impl Message {
    fn read_head(from: &mut TcpStream) -> std::io::Result<Self> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            from.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        Ok(Self { head: String::from_utf8(head).expect("text") })
    }

    fn body_bytes(&self) -> usize {
        let value = self.head.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        value.map_or(0, |(_, value)| value.trim().parse().expect("a length"))
    }

    /// The head with one header set to this value.
    fn head_with(&self, name: &str, value: &str) -> String {
        let is_it = |line: &&str| line.split_once(':').is_some_and(|(found, _)| found.eq_ignore_ascii_case(name));
        let kept: Vec<_> = self.head.trim_end().lines().filter(|line| !is_it(line)).collect();
        format!("{}\r\n{name}: {value}\r\n\r\n", kept.join("\r\n"))
    }
}
