//! The entry point inside the V8 host: the host's `main` is replaced by Heapstead's before it starts.

use crate::vm;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

pub type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
pub type LibcStart = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, *mut c_void, *mut c_void, *mut c_void, *mut c_void) -> c_int;

/// Defines the symbols that the shared library overrides in the V8 host. `$runner` is what a worker does once it is confined.
#[macro_export]
macro_rules! entry {
    ($runner:expr) => {
        extern "C" fn heapstead_main(argc: i32, argv: *mut *mut std::ffi::c_char, _envp: *mut *mut std::ffi::c_char) -> i32 {
            // SAFETY: the arguments that libc passes to `main`.
            unsafe { $crate::main(argc, argv, $runner) }
        }

        /// Overrides libc's function, which the host's start code calls with its own `main`.
        ///
        /// # Safety
        /// Called once, by the host's start code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn __libc_start_main(
            _host_main: $crate::Main,
            argc: i32,
            argv: *mut *mut std::ffi::c_char,
            init: *mut std::ffi::c_void,
            fini: *mut std::ffi::c_void,
            rtld_fini: *mut std::ffi::c_void,
            stack_end: *mut std::ffi::c_void,
        ) -> i32 {
            // SAFETY: the arguments of libc's own function, except for `main`.
            unsafe { $crate::libc_start_main()(heapstead_main, argc, argv, init, fini, rtld_fini, stack_end) }
        }

        /// V8 requests that forks do not inherit its memory, but workers need it.
        ///
        /// # Safety
        /// As `madvise(2)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32 {
            // SAFETY: forwards the caller's arguments.
            unsafe { $crate::forward_madvise(address, length, advice) }
        }

        /// V8's clock for `Date` and `Temporal.Now`. In place of the time zone, which nobody asks for, it passes on where it returns to.
        ///
        /// # Safety
        /// As `gettimeofday(2)`.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn gettimeofday(time: *mut libc::timeval, zone: *mut std::ffi::c_void) -> i32 {
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!("mov rsi, [rsp]", "jmp {}", sym $crate::coarse_gettimeofday);
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!("mov x1, x30", "b {}", sym $crate::coarse_gettimeofday);
        }

        /// For the main thread, libc reads `/proc/self/maps`, which a worker can't open. The values never change, so they are cached.
        ///
        /// # Safety
        /// As `pthread_getattr_np(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn pthread_getattr_np(thread: libc::pthread_t, attributes: *mut libc::pthread_attr_t) -> i32 {
            // SAFETY: forwards the caller's arguments.
            unsafe { $crate::cached_getattr(thread, attributes) }
        }

        /// # Safety
        /// As `malloc(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc(size: usize) -> *mut std::ffi::c_void {
            // SAFETY: forwards the caller's arguments.
            unsafe { $crate::allocator::malloc(size) }
        }

        /// # Safety
        /// As `calloc(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut std::ffi::c_void {
            // SAFETY: forwards the caller's arguments.
            unsafe { $crate::allocator::calloc(count, size) }
        }

        /// # Safety
        /// As `realloc(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn realloc(data: *mut std::ffi::c_void, size: usize) -> *mut std::ffi::c_void {
            // SAFETY: forwards the caller's arguments.
            unsafe { $crate::allocator::realloc(data, size) }
        }

        /// # Safety
        /// As `memalign(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut std::ffi::c_void {
            // SAFETY: forwards the caller's arguments.
            unsafe { $crate::allocator::memalign(alignment, size) }
        }

        /// # Safety
        /// As `aligned_alloc(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut std::ffi::c_void {
            // SAFETY: forwards the caller's arguments.
            unsafe { $crate::allocator::memalign(alignment, size) }
        }

        /// # Safety
        /// As `posix_memalign(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn posix_memalign(result: *mut *mut std::ffi::c_void, alignment: usize, size: usize) -> i32 {
            // SAFETY: forwards the caller's arguments.
            unsafe { $crate::allocator::posix_memalign(result, alignment, size) }
        }
    };
}

/// The time of day of the run, coarsened like every clock that code can read.
///
/// # Safety
/// As `gettimeofday(2)`.
pub unsafe extern "C" fn coarse_gettimeofday(time: *mut libc::timeval, caller: usize) -> c_int {
    let since = vm::time_of_day(caller);
    if !time.is_null() {
        // SAFETY: the caller's pointer is null or valid.
        unsafe {
            time.write(libc::timeval { tv_sec: since.as_secs() as libc::time_t, tv_usec: libc::suseconds_t::from(since.subsec_micros()) })
        };
    }
    0
}

type GetAttr = unsafe extern "C" fn(libc::pthread_t, *mut libc::pthread_attr_t) -> c_int;

/// Address and size of the main thread's stack, as libc returned them the first time.
static STACK: OnceLock<(usize, usize)> = OnceLock::new();

/// # Safety
/// As `pthread_getattr_np(3)`, for the main thread only.
pub unsafe fn cached_getattr(thread: libc::pthread_t, attributes: *mut libc::pthread_attr_t) -> c_int {
    // SAFETY: the caller's own arguments; libc always has this symbol, with this type.
    unsafe {
        if let Some((address, size)) = STACK.get() {
            libc::pthread_attr_init(attributes);
            return libc::pthread_attr_setstack(attributes, *address as *mut c_void, *size);
        }
        let real: GetAttr = std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"pthread_getattr_np".as_ptr()));
        let answer = real(thread, attributes);
        let (mut address, mut size) = (std::ptr::null_mut(), 0);
        if answer == 0 && libc::pthread_attr_getstack(attributes, &mut address, &mut size) == 0 {
            STACK.get_or_init(|| (address as usize, size));
        }
        answer
    }
}

unsafe extern "C" {
    fn tzset();
}

/// Makes libc read the time zone while files can still be opened. libc keeps it as long as `TZ` does not change.
pub fn cache_time_zone() {
    // SAFETY: one thread, and nothing changes the environment.
    unsafe { tzset() }
}

/// Fills the cache while files can still be opened.
pub fn cache_stack() {
    // SAFETY: the attributes are initialised by the call and live through it.
    unsafe {
        let mut attributes = std::mem::zeroed();
        cached_getattr(libc::pthread_self(), &mut attributes);
        libc::pthread_attr_destroy(&mut attributes);
    }
}

/// libc's own `__libc_start_main`.
pub fn libc_start_main() -> LibcStart {
    // SAFETY: libc always has this symbol, with this type.
    unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr())) }
}

/// # Safety
/// As `madvise(2)`.
pub unsafe fn forward_madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int {
    if advice == libc::MADV_DONTFORK {
        return 0;
    }
    // SAFETY: the caller's own arguments.
    unsafe { libc::syscall(libc::SYS_madvise, address, length, advice) as c_int }
}
