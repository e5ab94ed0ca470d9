//! Output pages compared with a model that reads everything: random text with characters of every length, split into random pieces, in both
//! modes, during the writing and after its end.

use heapstead_store::Outputs;
use heapstead_store::outputs::{Extent, OutputPage, PageRequest};
use heapstead_types::ExecutionId;
use proptest::prelude::*;

fn id() -> ExecutionId {
    ExecutionId::from_random([7; 16])
}

/// The expected page, computed from the whole text and the rules.
fn model(text: &str, ended: bool, request: PageRequest) -> OutputPage {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    if !ended && lines.last().is_some_and(|last| !last.ends_with('\n')) {
        lines.pop();
    }
    let (total_lines, total_bytes) = (lines.len() as u64, text.len() as u64);
    let lines_end: usize = lines.iter().map(|line| line.len()).sum();
    let line_of_next_byte = |byte: usize| text.as_bytes()[..byte].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let page = |start: usize, end: usize, start_line: u64, end_line: u64, next_line: u64, has_more: bool| OutputPage {
        data: text[start..end].to_owned(),
        start_line,
        end_line,
        next_line_offset: next_line,
        total_lines,
        start_byte: start as u64,
        end_byte: end as u64,
        next_byte_offset: end as u64,
        total_bytes,
        has_more,
    };
    match request {
        PageRequest::Lines { offset, .. } if offset > total_lines => page(lines_end, lines_end, offset, offset - 1, offset, false),
        PageRequest::Lines { offset, limit, .. } => {
            let first = offset as usize - 1;
            let last = lines.len().min(first.saturating_add(limit as usize));
            let start: usize = lines[..first].iter().map(|line| line.len()).sum();
            let end = start + lines[first..last].iter().map(|line| line.len()).sum::<usize>();
            page(start, end, offset, last as u64, last as u64 + 1, (last as u64) < total_lines)
        }
        PageRequest::Bytes { offset, .. } if offset >= total_bytes => {
            let line = if ended { total_lines + 1 } else { line_of_next_byte(text.len()) };
            OutputPage { start_byte: offset, end_byte: offset, next_byte_offset: offset, ..page(0, 0, line, line - 1, line, false) }
        }
        PageRequest::Bytes { offset, limit } => {
            let start = (0..=offset as usize).rev().find(|at| text.is_char_boundary(*at)).expect("0 is a boundary");
            let one = text[start..].chars().next().expect("before the end").len_utf8();
            let bound = text.len().min(start.saturating_add(limit as usize));
            let end = (start..=bound).rev().find(|at| text.is_char_boundary(*at)).expect("start is a boundary").max(start + one);
            let next_line = if ended && end == text.len() { total_lines + 1 } else { line_of_next_byte(end) };
            page(start, end, line_of_next_byte(start), line_of_next_byte(end - 1), next_line, end < text.len())
        }
    }
}

fn pieces() -> impl Strategy<Value = Vec<String>> {
    let character = prop_oneof![
        6 => Just('a'), 3 => Just('\n'), 2 => Just('é'), 2 => Just('€'), 2 => Just('𝄞'), 1 => Just('\r'), 1 => any::<char>(),
    ];
    let short = prop::collection::vec(character, 0..40).prop_map(String::from_iter);
    // Some pieces are longer than a block of the index, some of them without a newline.
    let long = (short.clone(), 1..400usize).prop_map(|(text, times)| text.repeat(times));
    prop::collection::vec(prop_oneof![8 => short, 1 => long], 0..20)
}

fn requests() -> impl Strategy<Value = PageRequest> {
    let offset = || prop_oneof![4 => 0..60u64, 4 => 0..20_000u64, 1 => Just(9_007_199_254_740_991)];
    let limit = || prop_oneof![4 => 1..10u64, 4 => 1..5000u64, 1 => Just(u64::MAX)];
    prop_oneof![
        (offset(), limit()).prop_map(|(offset, limit)| PageRequest::lines(offset + 1, limit)),
        (offset(), limit()).prop_map(|(offset, limit)| PageRequest::Bytes { offset, limit }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if std::env::var_os("HEAPSTEAD_TORTURE").is_some() { 20_000 } else { 600 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_page_matches_the_model(pieces in pieces(), requests in prop::collection::vec(requests(), 1..30)) {
        let folder = tempfile::tempdir().expect("folder");
        let outputs = Outputs::new(folder.path().into());
        let (mut writer, mut text) = (outputs.writer(&id()), String::new());
        let mut requests = requests.iter().cycle();
        for piece in &pieces {
            writer.append(piece.as_bytes().to_vec()).expect("written");
            text.push_str(piece);
            let request = *requests.next().expect("endless");
            prop_assert_eq!(outputs.page(&id(), writer.extent(), false, request).expect("a page"), model(&text, false, request), "running, {:?}", request);
            prop_assert_eq!(outputs.measure(&id()).expect("measured"), writer.extent());
        }
        let running = writer.extent();
        let extent = writer.finish().expect("finished");
        prop_assert_eq!(running.bytes, extent.bytes);
        for request in requests.take(30) {
            prop_assert_eq!(outputs.page(&id(), extent, true, *request).expect("a page"), model(&text, true, *request), "ended, {:?}", request);
        }
    }

    /// Output is recovered with the same pages, whenever the writer dies.
    #[test]
    fn the_output_of_a_dead_writer_is_recovered(pieces in pieces(), request in requests()) {
        let folder = tempfile::tempdir().expect("folder");
        let outputs = Outputs::new(folder.path().into());
        let mut writer = outputs.writer(&id());
        for piece in &pieces {
            writer.append(piece.as_bytes().to_vec()).expect("written");
        }
        drop(writer);
        let text = pieces.concat();
        let extent = outputs.recover(&id()).expect("recovered");
        prop_assert_eq!(extent, Extent { bytes: text.len() as u64, lines: text.split_inclusive('\n').count() as u64 });
        prop_assert_eq!(outputs.page(&id(), extent, true, request).expect("a page"), model(&text, true, request));
    }

    /// A compromised worker may write any bytes. Readers get valid text, the same however it was split.
    #[test]
    fn invalid_utf_8_becomes_replacement_characters(bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in prop::collection::vec(1..8usize, 1..20)) {
        let folder = tempfile::tempdir().expect("folder");
        let outputs = Outputs::new(folder.path().into());
        let mut writer = outputs.writer(&id());
        let (mut rest, mut cuts) = (bytes.as_slice(), cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((*cuts.next().expect("endless")).min(rest.len()));
            writer.append(piece.to_vec()).expect("written");
            rest = after;
        }
        let extent = writer.finish().expect("finished");
        let page = outputs.page(&id(), extent, true, PageRequest::Bytes { offset: 0, limit: 1 << 20 }).expect("a page");
        prop_assert_eq!(page.data, String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_page_by_lines_ends_early_at_its_byte_limit() {
    let folder = tempfile::tempdir().expect("folder");
    let outputs = Outputs::new(folder.path().into());
    let mut writer = outputs.writer(&id());
    let line = format!("{}\n", "x".repeat((6 << 20) - 1));
    for _ in 0..4 {
        writer.append(line.clone().into_bytes()).expect("written");
    }
    writer.append(format!("{}\n", "y".repeat(20 << 20)).into_bytes()).expect("written");
    let extent = writer.finish().expect("finished");
    let page = |offset| outputs.page(&id(), extent, true, PageRequest::lines(offset, 100)).expect("a page");
    let lines = |page: &OutputPage| (page.start_line, page.end_line, page.next_line_offset, page.has_more);
    assert_eq!(lines(&page(1)), (1, 2, 3, true), "two of 6 MiB fit into 16");
    assert_eq!(lines(&page(3)), (3, 4, 5, true));
    assert_eq!(lines(&page(5)), (5, 5, 6, false), "a line that is longer comes alone");
}

/// Reading the last page of a million lines touches only a few blocks.
#[test]
fn a_page_reads_only_what_it_contains() {
    let folder = tempfile::tempdir().expect("folder");
    let outputs = Outputs::new(folder.path().into());
    let mut writer = outputs.writer(&id());
    for chunk in 0..100 {
        let text: String = (0..10_000).map(|line| format!("line {}\n", chunk * 10_000 + line)).collect();
        writer.append(text.into_bytes()).expect("written");
    }
    let extent = writer.finish().expect("finished");
    let read = |request| {
        let before = bytes_read();
        outputs.page(&id(), extent, true, request).expect("a page");
        bytes_read() - before
    };
    let (first, last) = (read(PageRequest::lines(1, 100)), read(PageRequest::lines(999_900, 100)));
    assert!(first.abs_diff(last) < 20_000 && last < 40_000, "{first} and {last} bytes");
}

/// Bytes that this process has read so far.
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").expect("/proc");
    io.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).expect("rchar")
}

#[test]
fn another_process_reads_only_whole_characters() {
    let folder = tempfile::tempdir().expect("folder");
    let outputs = Outputs::new(folder.path().into());
    let mut writer = outputs.writer(&id());
    writer.append("a\n€".into()).expect("written");
    // Simulates a read while the last character was being written.
    let name = id().to_string();
    let file = folder.path().join(&name[..2]).join(format!("{name}.out"));
    for (length, bytes) in [(5, 5), (4, 2), (3, 2), (2, 2)] {
        std::fs::File::options().write(true).open(&file).expect("opened").set_len(length).expect("cut");
        assert_eq!(outputs.measure(&id()).expect("measured"), Extent { bytes, lines: 1 }, "{length}");
    }
}

#[test]
fn an_ended_output_is_the_file_that_was_written() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().expect("folder");
    let outputs = Outputs::new(folder.path().into());
    let mut writer = outputs.writer(&id());
    writer.append("line\n".repeat(2000).into_bytes()).expect("written");
    let name = id().to_string();
    let files = ["out", "lines"].map(|kind| folder.path().join(&name[..2]).join(format!("{name}.{kind}")));
    let inodes = || files.clone().map(|file| std::fs::metadata(file).expect("a file").ino());
    let written = inodes();
    let extent = writer.finish().expect("finished");
    assert_eq!(inodes(), written, "nothing was copied");
    assert_eq!(std::fs::read_dir(folder.path().join(&name[..2])).expect("folder").count(), 2, "and nothing added");
    outputs.remove(&id());
    assert!(outputs.page(&id(), extent, true, PageRequest::lines(1, 1)).is_err());
}

/// Numbers in a damaged index were added to others without a check, so that they overflowed.
#[test]
fn an_index_with_impossible_numbers_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let outputs = Outputs::new(folder.path().into());
    let mut writer = outputs.writer(&id());
    writer.append("line\n".repeat(2000).into_bytes()).expect("written");
    let extent = writer.finish().expect("finished");
    let name = id().to_string();
    std::fs::write(folder.path().join(&name[..2]).join(format!("{name}.lines")), [0xff; 16]).expect("damaged");
    for request in [PageRequest::lines(1500, 10), PageRequest::Bytes { offset: 9000, limit: 10 }] {
        assert!(outputs.page(&id(), extent, true, request).is_err(), "{request:?}");
    }
    assert_eq!(outputs.measure(&id()).expect("measured"), extent, "counted without the index");
}
