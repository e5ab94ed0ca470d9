//! Decoding piece by piece. A heap can hold no native decoder, so what one would remember is kept as bytes: fed to a new decoder, they bring
//! it into the same state.

use super::{bytes_of, uint8_array};
use encoding_rs::{CoderResult, Decoder, Encoding, ISO_2022_JP, UTF_16BE, UTF_16LE};

/// No character of any encoding is longer, nor is what an error makes a decoder read again.
const CHARACTER_BYTES_MAX: usize = 8;

/// `decodeStream(encoding, state, input, fatal, keepBom, isLast)` gives `[text, state]`; nothing when the input is malformed and `fatal`.
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
    // What the state decodes to was handed out before.
    stream.feed(&bytes[..begin], false);
    stream.text.clear();
    let boundary = stream.feed_to_boundary(&bytes, begin, is_last);
    if fatal && stream.malformed {
        return;
    }
    let state = match encoding {
        _ if is_last => Vec::new(),
        _ if encoding == ISO_2022_JP => Iso2022Jp::after(&bytes).replay(),
        _ if encoding == UTF_16LE => open_units(&bytes, 1).to_vec(),
        _ if encoding == UTF_16BE => open_units(&bytes, 0).to_vec(),
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

    /// Feeds what begins at `begin`, and gives the last place where the decoder was between two characters.
    fn feed_to_boundary(&mut self, bytes: &[u8], begin: usize, is_last: bool) -> usize {
        if is_last {
            self.feed(&bytes[begin..], true);
            return bytes.len();
        }
        let window = bytes.len().saturating_sub(CHARACTER_BYTES_MAX).max(begin);
        self.feed(&bytes[begin..window], false);
        let mut boundary = if window == begin { 0 } else { window };
        for at in window..=bytes.len() {
            // None while the decoder waits for more.
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

/// Half a unit, or the first of two surrogates, at the end of UTF-16; `high` is where in a unit the high byte is.
fn open_units(bytes: &[u8], high: usize) -> &[u8] {
    let even = bytes.len() & !1;
    let is_lead = even >= 2 && bytes[even - 2 + high] & 0xfc == 0xd8;
    &bytes[if is_lead { even - 2 } else { even }..]
}

/// What a decoder of ISO-2022-JP remembers: names and steps are those of the Encoding standard.
struct Iso2022Jp {
    /// The end of the escape sequence that the set of characters was chosen with.
    chosen: [u8; 2],
    /// Bytes of an escape sequence, or the first of two of a character.
    open: Vec<u8>,
    /// Nothing came since the last escape sequence: another one is an error.
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
            // The first byte of a character is lost to an escape, and the second ends it whatever it is.
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

    /// What looked like an escape sequence was none: the bytes after the escape are read again.
    fn give_up(&mut self, again: &[u8]) {
        self.open.clear();
        self.output_flag = false;
        again.iter().for_each(|byte| self.take(*byte));
    }

    /// The shortest input that leads here without an error.
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
