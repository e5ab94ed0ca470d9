//! Messages of a zygote: any packet is a message that is sent and received unchanged, or is refused.

use heapstead_wire::control::{FromZygote, receive, send};
use heapstead_wire::send_with_descriptors;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// A longer packet is cut by the receiver.
const PACKET_BYTES_MAX: usize = 4096;

pub fn run(packet: &[u8]) {
    // An empty packet can't be told from the end of the socket.
    if packet.is_empty() || packet.len() > 2 * PACKET_BYTES_MAX {
        return;
    }
    let (near, far) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).expect("sockets");
    send_with_descriptors(&near, packet, &[]).expect("sent");
    let Some((message, None)) = receive::<FromZygote>(&far).expect("received") else { return };
    send(&near, &message, None).expect("sent again");
    if serde_json::to_vec(&message).expect("JSON").len() <= PACKET_BYTES_MAX {
        let (again, _) = receive::<FromZygote>(&far).expect("received").expect("a message");
        assert_eq!(again, message);
    }
}
