//! A better summary than counting can give, from whoever can write one. It is asked after the fact, and nobody waits for it.

use crate::record::ToolCall;
use std::pin::Pin;
use std::time::Duration;

/// Later than this the window has most likely moved.
pub const SUMMARISER_DEADLINE: Duration = Duration::from_secs(60);
/// Asked at the same time; more folds than that keep the summary that counting gave.
pub const SUMMARISERS_MAX: usize = 8;

pub type Telling<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

pub trait Summariser: Send + Sync + 'static {
    /// What these calls came to, in a few lines; `earlier` is the summary of those before them. Nothing leaves the summary as it is.
    fn summarise<'a>(&'a self, earlier: Option<&'a str>, calls: &'a [ToolCall]) -> Telling<'a>;
}
