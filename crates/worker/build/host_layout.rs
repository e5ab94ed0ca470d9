//! Finds V8's internals in the host executable: the flag of an isolate that disables its optimising compilers, the function that discards
//! optimised code, and the clock of ICU. None is in V8's API, but the host is not stripped.

use object::{Architecture, Object, ObjectSection, ObjectSymbol};

/// `v8::internal::Isolate::use_optimizer()`, which reads the flag.
const USE_OPTIMIZER: &[u8] = b"_ZN2v88internal7Isolate13use_optimizerEv";
/// `v8::internal::Deoptimizer::DeoptimizeAll(v8::internal::Isolate*)`.
const DEOPTIMIZE_ALL: &[u8] = b"_ZN2v88internal11Deoptimizer13DeoptimizeAllEPNS0_7IsolateE";

/// The functions in which ICU reads the clock. Its version follows.
const ICU_CLOCKS: [&[u8]; 2] = [b"uprv_getUTCtime_", b"uprv_getRawUTCtime_"];

/// Longer than the function is.
const CODE_BYTES: u64 = 96;

pub struct HostLayout {
    build_id: Vec<u8>,
    /// Offset in an isolate.
    serializer_enabled: u32,
    /// Address in the executable.
    deoptimize_all: u64,
    /// Addresses and lengths in the executable.
    icu_clocks: Vec<(u64, u64)>,
}

pub fn read(file: &[u8]) -> Result<HostLayout, String> {
    let host = object::File::parse(file).map_err(|error| error.to_string())?;
    let build_id = host.build_id().ok().flatten().ok_or("the host has no build id")?.to_vec();
    let code = code_of(&host, address_of(&host, USE_OPTIMIZER)?)?;
    let serializer_enabled = match host.architecture() {
        Architecture::X86_64 => flag_in_x86_64(code)?,
        other => return Err(format!("reading the code of {other:?} is not supported yet")),
    };
    let icu_clocks = ICU_CLOCKS.iter().map(|prefix| extent_of(&host, prefix)).collect::<Result<_, _>>()?;
    Ok(HostLayout { build_id, serializer_enabled, deoptimize_all: address_of(&host, DEOPTIMIZE_ALL)?, icu_clocks })
}

/// As an expression of the type `Result<HostLayout, &'static str>`.
pub fn to_rust(layout: &Result<HostLayout, String>) -> String {
    match layout {
        Ok(HostLayout { build_id, serializer_enabled, deoptimize_all, icu_clocks }) => format!(
            "Ok(HostLayout {{ build_id: &{build_id:?}, serializer_enabled: {serializer_enabled:#x}, deoptimize_all: {deoptimize_all:#x}, \
             icu_clocks: &{icu_clocks:?} }})"
        ),
        Err(why) => format!("Err({why:?})"),
    }
}

fn address_of(host: &object::File, name: &[u8]) -> Result<u64, String> {
    let named = host.symbols().find(|symbol| symbol.name_bytes() == Ok(name)).map(|symbol| symbol.address());
    named.ok_or_else(|| format!("the host has no symbol {}", String::from_utf8_lossy(name)))
}

/// Address and length of the function whose name begins so.
fn extent_of(host: &object::File, prefix: &[u8]) -> Result<(u64, u64), String> {
    let named = host.symbols().find(|symbol| symbol.name_bytes().is_ok_and(|name| name.starts_with(prefix)));
    let extent = named.map(|symbol| (symbol.address(), symbol.size()));
    extent.ok_or_else(|| format!("the host has no symbol {}…", String::from_utf8_lossy(prefix)))
}

fn code_of<'a>(host: &object::File<'a>, address: u64) -> Result<&'a [u8], String> {
    host.sections()
        .find_map(|section| section.data_range(address, CODE_BYTES).ok().flatten())
        .ok_or_else(|| "the host's code can't be read".to_owned())
}

/// The offset in the function's only `cmp byte ptr [rdi + offset], 0`. `rdi` is the isolate.
fn flag_in_x86_64(code: &[u8]) -> Result<u32, String> {
    const COMPARE: [u8; 2] = [0x80, 0xbf];
    const RETURN: u8 = 0xc3;
    // The function ends with its second return.
    let end = code.iter().enumerate().filter(|(_, byte)| **byte == RETURN).nth(1).map_or(code.len(), |(index, _)| index);
    let offsets: Vec<u32> = code[..end]
        .windows(7)
        .filter(|bytes| bytes[..2] == COMPARE && bytes[6] == 0)
        .filter_map(|bytes| Some(u32::from_le_bytes(bytes[2..6].try_into().ok()?)))
        .collect();
    match offsets[..] {
        [offset] => Ok(offset),
        _ => Err(format!("the code of use_optimizer is not as expected: {} comparisons", offsets.len())),
    }
}
