//! One source, several instruction sets: the widest that the processor has is chosen at run time, or a narrower one
//! that was asked for.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicU8, Ordering};

/// The instructions that kernels are compiled for, from the narrowest. What they compute has the same bits with each,
/// products of bfloat16 excepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// What every processor of the kind has.
    Portable,
    /// Eight values at a time on x86-64.
    Avx2,
    /// Sixteen values at a time on x86-64.
    Avx512,
    /// The same, and squares of bfloat16 multiplied at once (AMX).
    Amx,
}

/// The variable of the environment that names the widest instructions to be used.
const VARIABLE: &str = "LACONIC_INSTRUCTIONS";

/// The instructions in use, by their place in [`Instructions::ALL`]; [`UNKNOWN`] until somebody asks.
static IN_USE: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = u8::MAX;

impl Instructions {
    /// Each of them once, from the narrowest.
    pub const ALL: [Instructions; 4] =
        [Instructions::Portable, Instructions::Avx2, Instructions::Avx512, Instructions::Amx];

    /// The name in the environment: that of the variant, in small letters.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// The widest that this processor has; the system is asked to permit those that it does not give to everybody.
    pub fn of_processor() -> Instructions {
        #[cfg(target_arch = "x86_64")]
        if Instructions::for_everybody() == Instructions::Avx512 && has_amx() {
            return Instructions::Amx;
        }
        Instructions::for_everybody()
    }

    /// The widest that this processor has of those that need no permission.
    fn for_everybody() -> Instructions {
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx2 = std::arch::is_x86_feature_detected!("avx2");
            if has_avx2 && has_avx512() {
                return Instructions::Avx512;
            }
            if has_avx2 {
                return Instructions::Avx2;
            }
        }
        Instructions::Portable
    }

    /// Those that the environment asks for (`LACONIC_INSTRUCTIONS=portable`), where it does.
    ///
    /// # Errors
    /// If there are none of this name; the text says which there are.
    pub fn asked_for() -> Result<Option<Instructions>, String> {
        let Some(asked) = std::env::var_os(VARIABLE).filter(|asked| !asked.is_empty()) else { return Ok(None) };
        let found = Instructions::ALL.into_iter().find(|of| asked.to_str() == Some(of.name().as_str()));
        let names = Instructions::ALL.map(Instructions::name).join(", ");
        found.map(Some).ok_or_else(|| format!("{VARIABLE} = {}: expected one of {names}", asked.to_string_lossy()))
    }

    /// Lets kernels of this process use none wider than these from now on.
    pub fn limit(self) {
        let widest = match self {
            Instructions::Amx => Instructions::of_processor(),
            _ => Instructions::for_everybody(),
        };
        IN_USE.store(self.min(widest) as u8, Ordering::Relaxed);
    }

    /// Those that kernels use: none that the processor lacks.
    #[inline]
    pub(crate) fn in_use() -> Instructions {
        match IN_USE.load(Ordering::Relaxed) {
            0 => Instructions::Portable,
            1 => Instructions::Avx2,
            2 => Instructions::Avx512,
            3 => Instructions::Amx,
            _ => Instructions::choose(),
        }
    }

    #[cold]
    fn choose() -> Instructions {
        Instructions::asked_for().ok().flatten().unwrap_or(Instructions::Amx).limit();
        Instructions::in_use()
    }
}

/// Defines a function whose body is compiled once for the baseline and once for each wider instruction set, with the
/// choice made when it is called. The body must be plain arithmetic that the compiler vectorises; nothing in it depends
/// on the instruction set, and since Rust never contracts `a * b + c` on its own, every variant gives the same bits.
macro_rules! per_processor {
    (
        $(#[$meta:meta])*
        $visibility:vis fn $name:ident $(<$($value:ident: $bound:path),+>)? ( $($argument:ident : $type:ty),* $(,)? )
        $body:block
    ) => {
        $(#[$meta])*
        #[allow(unsafe_code)]
        $visibility fn $name$(<$($value: $bound),+>)?($($argument: $type),*) {
            #[inline(always)]
            fn body$(<$($value: $bound),+>)?($($argument: $type),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                fn avx512$(<$($value: $bound),+>)?($($argument: $type),*) {
                    body($($argument),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2$(<$($value: $bound),+>)?($($argument: $type),*) {
                    body($($argument),*)
                }
                use crate::kernels::dispatch::Instructions;
                match Instructions::in_use() {
                    // SAFETY: the processor was asked for every feature that `avx512` enables.
                    Instructions::Avx512 | Instructions::Amx => return unsafe { avx512($($argument),*) },
                    // SAFETY: the processor was asked for the feature that `avx2` enables.
                    Instructions::Avx2 => return unsafe { avx2($($argument),*) },
                    Instructions::Portable => {}
                }
            }
            body($($argument),*)
        }
    };
}
pub(crate) use per_processor;

/// Whether the processor has all of AVX-512 that the kernels use. The standard library caches the answer.
pub(crate) fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Whether the processor has AVX2 and multiplies and adds at once.
pub(crate) fn has_avx2_and_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// What the processor tells of itself.
#[cfg(target_arch = "x86_64")]
fn told(leaf: u32, of: u32) -> std::arch::x86_64::CpuidResult {
    // Unsafe to call for the oldest Rust that is supported, safe for later ones.
    let ask: unsafe fn(u32, u32) -> std::arch::x86_64::CpuidResult = std::arch::x86_64::__cpuid_count;
    // SAFETY: every processor with 64 bits tells.
    unsafe { ask(leaf, of) }
}

/// Whether the processor multiplies pairs of bfloat16 (AVX512_BF16), and adds the products up in `f32`.
pub(crate) fn has_pairs() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        has_avx512() && std::arch::is_x86_feature_detected!("avx512bf16")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Whether kernels multiply pairs of bfloat16 so: where the processor can, and they may and gain by it.
pub(crate) fn multiplies_pairs() -> bool {
    Instructions::in_use() >= Instructions::Avx512 && has_pairs() && pairs_pay()
}

/// Intel's processors with AVX512_FP16 (Sapphire Rapids and what followed) take twice as long for pairs as for the same
/// products of `f32`; that was measured on one of them.
fn pairs_pay() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        // Asked once: a virtual machine's processor stops for each question.
        static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *ANSWER.get_or_init(|| {
            const OF_INTEL: u32 = u32::from_le_bytes(*b"Genu");
            const AVX512_FP16: u32 = 1 << 23;
            let vendor = told(0, 0);
            vendor.ebx != OF_INTEL || vendor.eax < 7 || told(7, 0).edx & AVX512_FP16 == 0
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Whether kernels multiply squares of bfloat16.
pub(crate) fn multiplies_squares() -> bool {
    Instructions::in_use() == Instructions::Amx
}

/// Whether the processor multiplies squares of bfloat16 (AMX), and the system lets this process do so. Either is asked
/// once.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_amx() -> bool {
    static ANSWER: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *ANSWER.get_or_init(|| {
        const AMX_BF16_AND_TILE: u32 = 1 << 22 | 1 << 24;
        const STATE_OF_TILES: u64 = 1 << 17 | 1 << 18;
        #[target_feature(enable = "xsave")]
        fn states_in_use() -> u64 {
            // SAFETY: register 0 of XGETBV is there wherever the instruction is.
            unsafe { std::arch::x86_64::_xgetbv(0) }
        }
        std::arch::is_x86_feature_detected!("xsave")
            && told(0, 0).eax >= 7
            && told(7, 0).edx & AMX_BF16_AND_TILE == AMX_BF16_AND_TILE
            // SAFETY: the processor was just asked for the feature.
            && unsafe { states_in_use() } & STATE_OF_TILES == STATE_OF_TILES
            && may_use_tiles()
    })
}

/// Asks the system for the registers' room in each thread's state, which it gives only to those who ask.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn may_use_tiles() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: the call changes nothing but what this process is permitted.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

/// Other systems have other ways to ask, which nobody has tried.
#[cfg(all(target_arch = "x86_64", not(target_os = "linux")))]
fn may_use_tiles() -> bool {
    false
}

/// Whether the upper halves of this thread's vector registers hold anything, as the processor tells it (XINUSE); `None`
/// where it does not tell. Compiled code expects to find them clean, and hand-written kernels of others may leave them
/// dirty: on Intel's processors every SSE instruction after them then waits to merge with what lies above.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn vector_registers_are_dirty() -> Option<bool> {
    #[target_feature(enable = "xsave")]
    fn upper_halves_in_use() -> bool {
        const UPPER_HALVES_OF_YMM_AND_ZMM: u64 = 1 << 2 | 1 << 6;
        // SAFETY: register 1 of XGETBV exists, as the caller has asked the processor.
        unsafe { std::arch::x86_64::_xgetbv(1) & UPPER_HALVES_OF_YMM_AND_ZMM != 0 }
    }
    let told = std::arch::is_x86_feature_detected!("xsave")
        && self::told(0xd, 1).eax & 1 << 2 != 0
        && std::arch::is_x86_feature_detected!("avx");
    // SAFETY: the processor was just asked for the feature that `upper_halves_in_use` enables.
    told.then(|| unsafe { upper_halves_in_use() })
}

/// Asks the processor to bring the cache line of `data[index]` into its L2 cache. Does nothing where there is no
/// such instruction or no such element.
///
/// Not into the L1 cache: that one has few places for lines on their way, which rows of several lines use up at once,
/// and then whatever the kernel reads itself waits behind them.
#[inline(always)]
pub(crate) fn prefetch<T>(data: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = data.get(index) {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: prefetching has no effect but on caches, and the address is that of a live element.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(element).cast::<i8>()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, index);
}

/// The same for all lines of one of the rows of so many columns, of 64 bytes each.
#[inline(always)]
pub(crate) fn prefetch_row<T>(rows: &[T], columns: usize, row: u32) {
    for line in (0..columns).step_by(64 / size_of::<T>()) {
        prefetch(rows, row as usize * columns + line);
    }
}

/// [`prefetch`] of `data[index]` into the L1 cache, since it is about to be written.
#[inline(always)]
pub(crate) fn prefetch_for_writing<T>(data: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = data.get(index) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: prefetching has no effect but on caches, and the address is that of a live element.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(std::ptr::from_ref(element).cast::<i8>()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, index);
}
