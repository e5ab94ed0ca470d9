//! The keys in use. The key file is reloaded when it changes, so that keys rotate without a restart.

use super::Keyring;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// Maximum delay until a change of the file is noticed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub struct Keys {
    known: RwLock<Arc<Keyring>>,
    looked_at: Mutex<Instant>,
}

impl Keys {
    pub fn new(keys: Keyring) -> Self {
        Self { known: RwLock::new(Arc::new(keys)), looked_at: Mutex::new(Instant::now()) }
    }

    /// The current keys.
    pub fn now(&self) -> Arc<Keyring> {
        if self.is_time_to_look() {
            self.look();
        }
        self.known()
    }

    /// Reloads the file if it has changed. An invalid file is ignored, because it may be half written.
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
