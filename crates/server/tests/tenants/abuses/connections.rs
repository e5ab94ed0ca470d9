//! Connections that send nothing, from the address that the others have, too.

use crate::abuse::Abuser;
use futures_util::future::join_all;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Before a connection is opened again: thousands in a second are enough.
const PAUSE: Duration = Duration::from_millis(50);

pub async fn silent(abuser: Abuser) {
    let address = abuser.tenant.url.strip_prefix("http://").unwrap_or_default();
    let open = async || TcpStream::connect(address).await.ok();
    let held = join_all((0..abuser.times(300, 2_500)).map(|_| open())).await;
    abuser.in_effect();
    // One that the server closes is opened again.
    join_all(held.into_iter().map(async |mut stream| {
        loop {
            if let Some(open) = &mut stream {
                let _ = open.read(&mut [0]).await;
            }
            tokio::time::sleep(PAUSE).await;
            stream = open().await;
        }
    }))
    .await;
}
