//! The keys in use: those of the key file, which is followed, so that keys rotate while all goes on.

use super::Keyring;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Changes of the file are seen within this time.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Keys {
    known: RwLock<Arc<Keyring>>,
    looked_at: Mutex<Instant>,
}

impl Keys {
    pub fn new(keys: Keyring) -> Self {
        Self { known: RwLock::new(Arc::new(keys)), looked_at: Mutex::new(Instant::now()) }
    }

    /// For what is done now.
    pub fn now(&self) -> Arc<Keyring> {
        if self.is_time_to_look() {
            self.look();
        }
        self.known()
    }

    /// Reads the file again if it has changed. A file that can't be used changes nothing: whoever writes it may not be done.
    pub fn look(&self) -> Arc<Keyring> {
        match self.known().read_again() {
            Some(Ok(keys)) => {
                tracing::info!(?keys, "the key file has changed: the first of these keys encrypts contexts from now on");
                self.rotate(keys);
            }
            Some(Err(error)) => tracing::warn!(%error, "the key file has changed and can't be used: the keys that are known stay"),
            None => {}
        }
        self.known()
    }

    pub fn rotate(&self, keys: Keyring) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keys);
    }

    fn known(&self) -> Arc<Keyring> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_time_to_look(&self) -> bool {
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_time = looked_at.elapsed() >= LOOK_EVERY;
        if is_time {
            *looked_at = Instant::now();
        }
        is_time
    }
}
