//! V8's internals that its API does not offer. No other file uses them.
//!
//! V8 disables its optimising compilers in an isolate that a snapshot is to be taken of, because machine code can't be saved. But a snapshot is
//! taken only after the run: until then the isolate may optimise, if all optimised code is discarded before.
//!
//! The places of the flag and of the function that discards code were read from the host executable when this library was built
//! (`build/host_layout.rs`). They are used only if the host is that very build, and only after a trial in a child process has passed: what
//! differs, even by a crash, means that stateful code is interpreted, and the zygote says why.
//!
//! ICU reads the same clock as `Date`, but only to fill its caches. Those readings are recognised by the address that they return to, and not
//! recorded: a replay may find the caches filled, or empty.

use super::{base_heap, isolate};
use heapstead_types::limits::HEAP_MB_DEFAULT;
use heapstead_wire::control::StatefulJit;
use rustix::process::{WaitOptions, waitpid};
use std::ops::Range;
use std::sync::OnceLock;

struct HostLayout {
    build_id: &'static [u8],
    /// Offset in an isolate of the flag that it is to be saved, one byte.
    serializer_enabled: usize,
    /// Address of `Deoptimizer::DeoptimizeAll(Isolate*)`.
    deoptimize_all: usize,
    /// Addresses and lengths of the functions in which ICU reads the clock.
    icu_clocks: &'static [(usize, usize)],
}

const HOST_LAYOUT: Result<HostLayout, &str> = include!(concat!(env!("OUT_DIR"), "/host_layout.rs"));

/// Where ICU's functions are in this process. Nowhere if the host is another build.
static ICU_CLOCKS: OnceLock<Vec<Range<usize>>> = OnceLock::new();

/// Whether this return address is in a function in which ICU reads the clock. It does so when it fills its caches, which code can't observe.
pub fn is_icu_clock(caller: usize) -> bool {
    let clocks = ICU_CLOCKS.get_or_init(|| {
        let host = Host::running();
        let layout = HOST_LAYOUT.as_ref().ok().filter(|layout| host.build_id() == Some(layout.build_id));
        let clocks = layout.map(|layout| layout.icu_clocks).unwrap_or_default();
        clocks.iter().map(|(address, length)| host.load_address + address..host.load_address + address + length).collect()
    });
    clocks.iter().any(|clock| clock.contains(&caller))
}

/// Set if stateful code is optimised.
static OPTIMISER: OnceLock<Optimiser> = OnceLock::new();

/// Decides whether stateful code is optimised. Called once, in the zygote, when V8 and the base heap are ready.
pub fn enable_stateful_jit(wanted: bool) -> StatefulJit {
    if !wanted {
        return StatefulJit::Off;
    }
    match Optimiser::find().and_then(|optimiser| optimiser.try_out().map(|()| optimiser)) {
        Ok(optimiser) => {
            OPTIMISER.get_or_init(|| optimiser);
            StatefulJit::On
        }
        Err(why) => StatefulJit::Unavailable { why },
    }
}

/// Lets V8 optimise the code of an isolate that is to be saved. Its context exists already: restoring one needs the flag.
pub fn allow_optimised_code(isolate: &mut v8::Isolate) {
    if let Some(optimiser) = OPTIMISER.get() {
        optimiser.allow(isolate);
    }
}

/// Brings an isolate back to what V8 can save.
pub fn discard_optimised_code(isolate: &mut v8::Isolate) {
    if let Some(optimiser) = OPTIMISER.get() {
        optimiser.discard(isolate);
    }
}

#[derive(Clone, Copy)]
struct Optimiser {
    serializer_enabled: usize,
    deoptimize_all: unsafe extern "C" fn(*mut u8),
}

impl Optimiser {
    fn find() -> Result<Self, String> {
        let layout = HOST_LAYOUT.as_ref().map_err(|why| (*why).to_owned())?;
        let host = Host::running();
        if host.build_id() != Some(layout.build_id) {
            return Err("the V8 host is not the one that this build was made for".into());
        }
        let address = host.load_address + layout.deoptimize_all;
        // SAFETY: the build id says that this is the executable in which the function was found at this address.
        let deoptimize_all = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*mut u8)>(address) };
        Ok(Self { serializer_enabled: layout.serializer_enabled, deoptimize_all })
    }

    fn flag(&self, isolate: &mut v8::Isolate) -> *mut u8 {
        // SAFETY: the offset is within an isolate of this build of V8.
        unsafe { raw(isolate).add(self.serializer_enabled) }
    }

    fn allow(&self, isolate: &mut v8::Isolate) {
        // SAFETY: as in `flag`; V8 reads it on this thread only.
        unsafe { self.flag(isolate).write(0) }
    }

    fn discard(&self, isolate: &mut v8::Isolate) {
        // SAFETY: as in `flag`. No JavaScript is on the stack, as V8's function demands.
        unsafe {
            self.flag(isolate).write(1);
            (self.deoptimize_all)(raw(isolate));
        }
    }

    /// Checks the flag and takes a snapshot after hot code, in a child process, which a wrong address may kill.
    fn try_out(&self) -> Result<(), String> {
        // SAFETY: this process has one thread. The child only uses memory, and exits without running destructors.
        match unsafe { libc::fork() } {
            0 => {
                let code = i32::from(!self.works());
                // SAFETY: ends the process.
                unsafe { libc::_exit(code) }
            }
            -1 => Err(format!("no child process for the trial: {}", std::io::Error::last_os_error())),
            child => {
                let child = rustix::process::Pid::from_raw(child);
                match waitpid(child, WaitOptions::empty()) {
                    Ok(Some((_, status))) if status.exit_status() == Some(0) => Ok(()),
                    other => Err(format!("a trial of optimised code in a heap that is to be saved failed: {other:?}")),
                }
            }
        }
    }

    fn works(&self) -> bool {
        let mut transient = std::mem::ManuallyDrop::new(isolate::transient(base_heap::loaded(), HEAP_MB_DEFAULT));
        let mut saveable = isolate::saveable(base_heap::loaded(), HEAP_MB_DEFAULT);
        // SAFETY: as in `flag`.
        let flags = unsafe { [self.flag(&mut transient).read(), self.flag(&mut saveable).read()] };
        flags == [0, 1] && self.runs_hot_code(&mut saveable) && {
            self.discard(&mut saveable);
            saveable.create_blob(v8::FunctionCodeHandling::Keep).is_some_and(|blob| !blob.is_empty())
        }
    }

    fn runs_hot_code(&self, isolate: &mut v8::Isolate) -> bool {
        const HOT: &str = "(function sum(n) { let s = 0; for (let i = 0; i < n; i++) s = (s + i * i) | 0; return s })(300000)";
        const SUM: i32 = {
            let (mut sum, mut i) = (0_i32, 0_i32);
            while i < 300_000 {
                sum = sum.wrapping_add(i.wrapping_mul(i));
                i += 1;
            }
            sum
        };
        v8::scope!(let scope, isolate);
        let context = v8::Context::new(scope, Default::default());
        let scope = &mut v8::ContextScope::new(scope, context);
        self.allow(scope);
        let sum = v8::String::new(scope, HOT)
            .and_then(|source| v8::Script::compile(scope, source, None))
            .and_then(|script| script.run(scope))
            .and_then(|value| value.int32_value(scope));
        scope.set_default_context(context);
        sum == Some(SUM)
    }
}

/// The address of V8's own isolate object, which is what its API points to.
fn raw(isolate: &mut v8::Isolate) -> *mut u8 {
    // SAFETY: the type is transparent over a pointer.
    unsafe { std::mem::transmute::<v8::UnsafeRawIsolatePtr, *mut u8>(isolate.as_raw_isolate_ptr()) }
}

/// The executable of this process, as the kernel loaded it.
struct Host {
    headers: &'static [libc::Elf64_Phdr],
    /// What is added to addresses in the file: 0 unless it is position-independent.
    load_address: usize,
}

impl Host {
    fn running() -> Self {
        // SAFETY: the kernel's own description of the program headers, which stay mapped.
        let headers: &[libc::Elf64_Phdr] = unsafe {
            let (start, count) = (libc::getauxval(libc::AT_PHDR) as *const libc::Elf64_Phdr, libc::getauxval(libc::AT_PHNUM) as usize);
            if start.is_null() { &[] } else { std::slice::from_raw_parts(start, count) }
        };
        let described =
            headers.iter().find(|header| header.p_type == libc::PT_PHDR).map_or(headers.as_ptr() as u64, |header| header.p_vaddr);
        Self { headers, load_address: headers.as_ptr() as usize - described as usize }
    }

    fn build_id(&self) -> Option<&'static [u8]> {
        self.headers.iter().filter(|header| header.p_type == libc::PT_NOTE).find_map(|header| {
            // SAFETY: a loaded segment of the executable.
            let notes =
                unsafe { std::slice::from_raw_parts((self.load_address + header.p_vaddr as usize) as *const u8, header.p_memsz as usize) };
            build_id_in(notes)
        })
    }
}

/// The notes of a segment are each three words (lengths of name and content, kind), then name and content, padded to four bytes.
fn build_id_in(mut notes: &'static [u8]) -> Option<&'static [u8]> {
    const HEADER_BYTES: usize = 12;
    const NT_GNU_BUILD_ID: usize = 3;
    loop {
        let word = |index: usize| Some(u32::from_ne_bytes(notes.get(4 * index..4 * index + 4)?.try_into().ok()?) as usize);
        let (name_bytes, content_bytes, kind) = (word(0)?, word(1)?, word(2)?);
        let content = HEADER_BYTES + name_bytes.next_multiple_of(4);
        if kind == NT_GNU_BUILD_ID && notes.get(HEADER_BYTES..HEADER_BYTES + name_bytes)? == b"GNU\0" {
            return notes.get(content..content + content_bytes);
        }
        notes = notes.get(content + content_bytes.next_multiple_of(4)..)?;
    }
}
