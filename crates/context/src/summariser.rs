//! An optional summariser that replaces the generated summary with a better text. It runs in the background.

use crate::record::ToolCall;
use std::pin::Pin;
use std::time::Duration;

/// After this time the window has most likely moved.
pub const SUMMARISER_DEADLINE: Duration = Duration::from_secs(60);
/// Maximum concurrent calls. Further folds use the generated summary.
pub const SUMMARISERS_MAX: usize = 8;

pub type Telling<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

pub trait Summariser: Send + Sync + 'static {
    /// Summarises these calls in a few lines. `earlier` is the summary of the calls before them. `None` leaves the generated summary
    /// unchanged.
    fn summarise<'a>(&'a self, earlier: Option<&'a str>, calls: &'a [ToolCall]) -> Telling<'a>;
}
