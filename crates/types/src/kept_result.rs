//! The comment with which a source asks that its result stays on the heap, as `_`.

/// A last line of the source. It is in the source and not a parameter of the run, because the journal has the source, or what was made of it:
/// whatever repeats the run keeps the result too.
pub const KEEP_RESULT: &str = "\n//# keepResult";

/// The source without that line; none if it does not end with it.
pub fn without_keep_result(source: &str) -> Option<&str> {
    source.strip_suffix(KEEP_RESULT)
}
