//! Incremental decoding for `TextDecoder`. A heap can't contain a native decoder, so the decoder's state is stored as bytes of input: a new
//! decoder that reads them is in the same state.

use super::{bytes_of, uint8_array};
use encoding_rs::{CoderResult, Decoder, Encoding, ISO_2022_JP, UTF_16BE, UTF_16LE};

/// No character of any encoding is longer, nor are the bytes that a decoder reads again after an error.
const CHARACTER_BYTES_MAX: usize = 8;

/// `decodeStream(encoding, state, input, fatal, keepBom, isLast)` returns `[text, state]`, or undefined if the input is malformed and `fatal`.
pub fn decode_stream<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    arguments: &v8::FunctionCallbackArguments<'s>,
    answer: &mut v8::ReturnValue<'_>,
) {
    let name = arguments.get(0).to_rust_string_lossy(scope);
    let Some(encoding) = Encoding::for_label(name.as_bytes()) else { return };
    let mut bytes = bytes_of(arguments.get(1));
    let begin = bytes.len();
    bytes.extend(bytes_of(arguments.get(2)));
    let (fatal, keep_bom, is_last) = (arguments.get(3).is_true(), arguments.get(4).is_true(), arguments.get(5).is_true());
    let mut stream = Stream {
        decoder: if keep_bom { encoding.new_decoder_without_bom_handling() } else { encoding.new_decoder_with_bom_removal() },
        text: String::new(),
        malformed: false,
    };
    // The text of the stored bytes was returned by an earlier call.
    stream.feed(&bytes[..begin], false);
    stream.text.clear();
    let boundary = stream.feed_to_boundary(&bytes, begin, is_last);
    if fatal && stream.malformed {
        return;
    }
    let state = match encoding {
        _ if is_last => Vec::new(),
        _ if encoding == ISO_2022_JP => Iso2022Jp::after(&bytes).replay(),
        _ if encoding == UTF_16LE => incomplete_units(&bytes, 1).to_vec(),
        _ if encoding == UTF_16BE => incomplete_units(&bytes, 0).to_vec(),
        _ => bytes[boundary..].to_vec(),
    };
    if let (Some(text), Some(state)) = (v8::String::new(scope, &stream.text), uint8_array(scope, &state)) {
        answer.set(v8::Array::new_with_elements(scope, &[text.into(), state.into()]).into());
    }
}

struct Stream {
    decoder: Decoder,
    text: String,
    malformed: bool,
}

impl Stream {
    fn feed(&mut self, mut input: &[u8], is_last: bool) {
        loop {
            self.text.reserve(input.len().max(CHARACTER_BYTES_MAX));
            let (result, read, errors) = self.decoder.decode_to_string(input, &mut self.text, is_last);
            input = &input[read..];
            self.malformed |= errors;
            if result == CoderResult::InputEmpty {
                return;
            }
        }
    }

    /// Feeds the bytes from `begin` on. Returns the last position at which the decoder was between two characters.
    fn feed_to_boundary(&mut self, bytes: &[u8], begin: usize, is_last: bool) -> usize {
        if is_last {
            self.feed(&bytes[begin..], true);
            return bytes.len();
        }
        let window = bytes.len().saturating_sub(CHARACTER_BYTES_MAX).max(begin);
        self.feed(&bytes[begin..window], false);
        let mut boundary = if window == begin { 0 } else { window };
        for at in window..=bytes.len() {
            // None while the decoder is inside a character.
            if self.decoder.latin1_byte_compatible_up_to(&[]).is_some() {
                boundary = at;
            }
            if let Some(byte) = bytes.get(at..at + 1) {
                self.feed(byte, false);
            }
        }
        boundary
    }
}

/// The incomplete end of UTF-16 input: half a code unit, a high surrogate, or both. `high` is the index of the high byte in a code unit.
fn incomplete_units(bytes: &[u8], high: usize) -> &[u8] {
    let even = bytes.len() & !1;
    let is_lead = even >= 2 && bytes[even - 2 + high] & 0xfc == 0xd8;
    &bytes[if is_lead { even - 2 } else { even }..]
}

/// The state of an ISO-2022-JP decoder. Names and steps are those of the Encoding standard.
struct Iso2022Jp {
    /// The last two bytes of the escape sequence that selected the character set.
    chosen: [u8; 2],
    /// Bytes of an unfinished escape sequence, or the first byte of a two-byte character.
    open: Vec<u8>,
    /// No character was decoded since the last escape sequence, so another one is an error.
    output_flag: bool,
}

const ESCAPE: u8 = 0x1b;
const ASCII: [u8; 2] = *b"(B";
const ROMAN: [u8; 2] = *b"(J";
const KATAKANA: [u8; 2] = *b"(I";

impl Iso2022Jp {
    fn after(bytes: &[u8]) -> Self {
        let mut state = Self { chosen: ASCII, open: Vec::new(), output_flag: false };
        bytes.iter().for_each(|byte| state.take(*byte));
        state
    }

    fn has_two_byte_characters(&self) -> bool {
        self.chosen[0] == b'$'
    }

    fn take(&mut self, byte: u8) {
        match self.open[..] {
            [ESCAPE] if matches!(byte, b'$' | b'(') => self.open.push(byte),
            [ESCAPE] => self.give_up(&[byte]),
            [ESCAPE, lead] => match [lead, byte] {
                [b'(', b'B' | b'J' | b'I'] | [b'$', b'@' | b'B'] => {
                    self.chosen = [lead, byte];
                    self.open.clear();
                    self.output_flag = true;
                }
                _ => self.give_up(&[lead, byte]),
            },
            // An escape discards the first byte of a character. Any other second byte ends the character.
            [_] => self.open = if byte == ESCAPE { vec![ESCAPE] } else { Vec::new() },
            _ if byte == ESCAPE => self.open = vec![ESCAPE],
            _ => {
                self.output_flag = false;
                if self.has_two_byte_characters() && (0x21..=0x7e).contains(&byte) {
                    self.open = vec![byte];
                }
            }
        }
    }

    /// The sequence was not a valid escape sequence: reads the bytes after the escape again.
    fn give_up(&mut self, again: &[u8]) {
        self.open.clear();
        self.output_flag = false;
        again.iter().for_each(|byte| self.take(*byte));
    }

    /// The shortest input that brings a new decoder into this state without an error.
    fn replay(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.output_flag || self.chosen != ASCII {
            bytes.push(ESCAPE);
            bytes.extend(self.chosen);
        }
        if !self.output_flag {
            match self.chosen {
                ASCII => {}
                ROMAN | KATAKANA => bytes.push(b'1'),
                _ => bytes.extend(*b"0!"),
            }
        }
        bytes.extend(self.open);
        bytes
    }
}
