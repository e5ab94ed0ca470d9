//! Console output: whatever bytes a worker writes, in whatever pieces, the pages are its text, and a damaged file is an error.

use heapstead_store::Outputs;
use heapstead_store::outputs::{Extent, LineBytes, OutputPage, PageRequest};
use heapstead_types::ExecutionId;
use std::fs;
use std::sync::LazyLock;
use tempfile::TempDir;

/// How often the bytes are written, the length of the pieces, the request, damage to the text or its index, and the bytes.
type Input<'a> = (u8, u8, Request, Option<Damage>, &'a [u8]);
/// By bytes or by lines, the offset, and the limit.
type Request = (bool, u64, u16);
/// To the index or to the text, where, and with what.
type Damage = (bool, u16, [u8; 8]);

/// More pages than this are not read of one output.
const PAGES_MAX: u64 = 64;
const LINE_BYTES: LineBytes = LineBytes { page_max: 1000, line_max: 5000, data_max: u64::MAX };

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

pub fn run(input: Input<'_>) {
    let (times, piece, (by_bytes, offset, limit), damage, bytes) = input;
    let (outputs, id) = (Outputs::new(FOLDER.path().to_owned()), ExecutionId::from_random([7; 16]));
    let bytes = bytes.repeat(usize::from(times % 32) + 1);
    let text = String::from_utf8_lossy(&bytes);
    let mut writer = outputs.writer(&id);
    for piece in bytes.chunks(64 * usize::from(piece) + 1) {
        writer.append(piece.to_vec()).expect("written");
        assert!(writer.extent().bytes <= text.len() as u64);
    }
    let written = writer.finish().expect("finished");
    assert_eq!(written.bytes, text.len() as u64);
    let limit = u64::from(limit) + 1;
    let page = |offset| {
        let lines = PageRequest::Lines { offset, limit, bytes: LINE_BYTES };
        outputs.page(&id, written, true, if by_bytes { PageRequest::Bytes { offset, limit } } else { lines })
    };
    check_page(&page(offset.max(1)).expect("a page"), &text, written);
    check_all(|offset| page(offset).expect("a page"), by_bytes, &text);
    if let Some(damage) = damage {
        damage_file(damage);
        let _ = (page(offset.max(1)), page(1), outputs.measure(&id));
        assert!(outputs.recover(&id).is_ok_and(|recovered| recovered.bytes <= written.bytes));
        let _ = page(1);
    }
    outputs.remove(&id);
}

fn check_page(page: &OutputPage, text: &str, written: Extent) {
    let is_empty = page.data.is_empty();
    assert!(is_empty || text.get(page.start_byte as usize..page.end_byte as usize) == Some(&page.data), "{page:?}");
    assert_eq!((page.total_bytes, page.total_lines), (written.bytes, written.lines));
    assert!(is_empty || (page.start_line >= 1 && page.end_line >= page.start_line && page.end_line <= written.lines), "{page:?}");
}

/// All pages after each other are the text.
fn check_all(page: impl Fn(u64) -> OutputPage, by_bytes: bool, text: &str) {
    let (mut offset, mut read) = (u64::from(!by_bytes), String::new());
    for _ in 0..PAGES_MAX {
        let next = page(offset);
        // A line that does not fit is read by its bytes.
        if next.data.is_empty() && next.has_more && !by_bytes {
            return;
        }
        read.push_str(&next.data);
        offset = if by_bytes { next.next_byte_offset } else { next.next_line_offset };
        if !next.has_more {
            return assert_eq!(read, text);
        }
        assert!(!next.data.is_empty(), "no progress: {next:?}");
    }
    assert!(text.starts_with(&read));
}

fn damage_file((is_index, at, with): Damage) {
    let path = FOLDER.path().join("07").join(format!("{}.{}", "07".repeat(16), if is_index { "lines" } else { "out" }));
    let Ok(mut content) = fs::read(&path) else { return };
    let at = usize::from(at) % content.len();
    content.iter_mut().skip(at).zip(with).for_each(|(byte, with)| *byte ^= with);
    content.truncate(content.len() - usize::from(with[0] & 1));
    fs::write(path, content).expect("damaged");
}
