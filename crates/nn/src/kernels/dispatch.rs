//! One source, several instruction sets: the fastest one that the processor has is chosen at run time.
#![allow(unsafe_code)]

/// Defines a function whose body is compiled once for the baseline and once for each wider instruction set, with the
/// choice made when it is called. The body must be plain arithmetic that the compiler vectorises; nothing in it depends
/// on the instruction set, and since Rust never contracts `a * b + c` on its own, every variant gives the same bits.
macro_rules! per_processor {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident ( $($argument:ident : $type:ty),* $(,)? ) $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code)]
        $visibility fn $name($($argument: $type),*) {
            #[inline(always)]
            fn body($($argument: $type),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
                    fn avx512($($argument: $type),*) {
                    body($($argument),*)
                }
                #[target_feature(enable = "avx2")]
                    fn avx2($($argument: $type),*) {
                    body($($argument),*)
                }
                if crate::kernels::dispatch::has_avx512() {
                    // SAFETY: the processor was just asked for every feature that `avx512` enables.
                    return unsafe { avx512($($argument),*) };
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor was just asked for the feature that `avx2` enables.
                    return unsafe { avx2($($argument),*) };
                }
            }
            body($($argument),*)
        }
    };
}
pub(crate) use per_processor;

/// Whether the processor has all of AVX-512 that the kernels use. The standard library caches the answer.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
        && std::arch::is_x86_feature_detected!("avx512dq")
        && std::arch::is_x86_feature_detected!("avx512vl")
}

/// Zeroes the upper halves of the vector registers, which compiled code expects to find clean and which hand-written
/// kernels of others may leave dirty: on Intel's processors every SSE instruction after them then waits to merge with
/// what lies above, and a scalar loop takes up to fifteen times as long. Costs a cycle; changes no value in use.
#[inline]
pub(crate) fn clean_vector_registers() {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx")]
        fn zero_upper_halves() {
            std::arch::x86_64::_mm256_zeroupper();
        }
        if std::arch::is_x86_feature_detected!("avx") {
            // SAFETY: the processor was just asked for the feature that `zero_upper_halves` enables.
            unsafe { zero_upper_halves() }
        }
    }
}

/// Whether the upper halves of this thread's vector registers hold anything, as the processor tells it (XINUSE); `None`
/// where it does not tell.
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) fn vector_registers_are_dirty() -> Option<bool> {
    #[target_feature(enable = "xsave")]
    fn upper_halves_in_use() -> bool {
        const UPPER_HALVES_OF_YMM_AND_ZMM: u64 = 1 << 2 | 1 << 6;
        // SAFETY: register 1 of XGETBV exists, as the caller has asked the processor.
        unsafe { std::arch::x86_64::_xgetbv(1) & UPPER_HALVES_OF_YMM_AND_ZMM != 0 }
    }
    let told = std::arch::is_x86_feature_detected!("xsave")
        && std::arch::x86_64::__cpuid_count(0xd, 1).eax & 1 << 2 != 0
        && std::arch::is_x86_feature_detected!("avx");
    // SAFETY: the processor was just asked for the feature that `upper_halves_in_use` enables.
    told.then(|| unsafe { upper_halves_in_use() })
}

/// Asks the processor to bring the cache line of `data[index]` closer. Does nothing where there is no such instruction
/// or no such element.
#[inline(always)]
pub(crate) fn prefetch(data: &[f32], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = data.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching has no effect but on caches, and the address is that of a live element.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast::<i8>()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (data, index);
}

/// The same for `data[index]`, which is about to be written.
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
