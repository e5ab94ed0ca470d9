//! How we come to run inside the V8 host: its `main` is replaced by ours before it starts.

use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

pub type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
pub type LibcStart = unsafe extern "C" fn(Main, c_int, *mut *mut c_char, *mut c_void, *mut c_void, *mut c_void, *mut c_void) -> c_int;

/// Defines the symbols that a shared library takes over in the V8 host, with `$runner` as what a worker does with an execution.
#[macro_export]
macro_rules! entry {
    ($runner:expr) => {
        extern "C" fn heapstead_main(argc: i32, argv: *mut *mut std::ffi::c_char, _envp: *mut *mut std::ffi::c_char) -> i32 {
            // SAFETY: what libc calls `main` with.
            unsafe { $crate::main(argc, argv, $runner) }
        }

        /// Takes the place of libc's, which the host's start code calls with its own `main`.
        ///
        /// # Safety
        /// Called once, by the host's start code.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn __libc_start_main(
            _hosts_own: $crate::Main,
            argc: i32,
            argv: *mut *mut std::ffi::c_char,
            init: *mut std::ffi::c_void,
            fini: *mut std::ffi::c_void,
            rtld_fini: *mut std::ffi::c_void,
            stack_end: *mut std::ffi::c_void,
        ) -> i32 {
            // SAFETY: these are the arguments libc's own function was to get, with another `main`.
            unsafe { $crate::interpose()(heapstead_main, argc, argv, init, fini, rtld_fini, stack_end) }
        }

        /// V8 asks that its memory not be inherited by forks; a zygote lives on exactly that inheritance.
        ///
        /// # Safety
        /// As `madvise(2)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn madvise(address: *mut std::ffi::c_void, length: usize, advice: i32) -> i32 {
            // SAFETY: passed on as it came.
            unsafe { $crate::pass_on_madvise(address, length, advice) }
        }

        /// libc reads `/proc/self/maps` to answer this for the main thread, which a worker can't; the answer never changes.
        ///
        /// # Safety
        /// As `pthread_getattr_np(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn pthread_getattr_np(thread: libc::pthread_t, attributes: *mut libc::pthread_attr_t) -> i32 {
            // SAFETY: passed on as it came.
            unsafe { $crate::remembered_getattr(thread, attributes) }
        }

        /// # Safety
        /// As `malloc(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc(size: usize) -> *mut std::ffi::c_void {
            // SAFETY: passed on as it came.
            unsafe { $crate::allocator::malloc(size) }
        }

        /// # Safety
        /// As `calloc(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut std::ffi::c_void {
            // SAFETY: passed on as it came.
            unsafe { $crate::allocator::calloc(count, size) }
        }

        /// # Safety
        /// As `realloc(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn realloc(data: *mut std::ffi::c_void, size: usize) -> *mut std::ffi::c_void {
            // SAFETY: passed on as it came.
            unsafe { $crate::allocator::realloc(data, size) }
        }

        /// # Safety
        /// As `memalign(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> *mut std::ffi::c_void {
            // SAFETY: passed on as it came.
            unsafe { $crate::allocator::memalign(alignment, size) }
        }

        /// # Safety
        /// As `aligned_alloc(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> *mut std::ffi::c_void {
            // SAFETY: passed on as it came.
            unsafe { $crate::allocator::memalign(alignment, size) }
        }

        /// # Safety
        /// As `posix_memalign(3)`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn posix_memalign(result: *mut *mut std::ffi::c_void, alignment: usize, size: usize) -> i32 {
            // SAFETY: passed on as it came.
            unsafe { $crate::allocator::posix_memalign(result, alignment, size) }
        }
    };
}

type GetAttr = unsafe extern "C" fn(libc::pthread_t, *mut libc::pthread_attr_t) -> c_int;

/// Where the one thread's stack lies: address and size, as libc said the first time.
static STACK: OnceLock<(usize, usize)> = OnceLock::new();

/// # Safety
/// As `pthread_getattr_np(3)`, for the one thread there is.
pub unsafe fn remembered_getattr(thread: libc::pthread_t, attributes: *mut libc::pthread_attr_t) -> c_int {
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

/// Has libc read its time zone while files can still be read; it keeps it as long as the environment says the same.
pub fn remember_time_zone() {
    // SAFETY: one thread, and nobody changes the environment.
    unsafe { tzset() }
}

/// Asks while files can still be read.
pub fn remember_stack() {
    // SAFETY: the attributes are initialised by the call and live through it.
    unsafe {
        let mut attributes = std::mem::zeroed();
        remembered_getattr(libc::pthread_self(), &mut attributes);
        libc::pthread_attr_destroy(&mut attributes);
    }
}

/// libc's own `__libc_start_main`.
pub fn interpose() -> LibcStart {
    // SAFETY: libc always has this symbol, with this type.
    unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr())) }
}

/// # Safety
/// As `madvise(2)`.
pub unsafe fn pass_on_madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int {
    if advice == libc::MADV_DONTFORK {
        return 0;
    }
    // SAFETY: the caller's own arguments.
    unsafe { libc::syscall(libc::SYS_madvise, address, length, advice) as c_int }
}
