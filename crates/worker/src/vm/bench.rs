//! The raw loop that the bench compares with: the same V8 work in one process, and nothing else.

pub fn main(_arguments: &[&str]) -> i32 {
    0
}
