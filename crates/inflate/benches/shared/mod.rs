//! Shared parts of the benchmarks of inflaters and of encoders: pseudo-random numbers, and the CPU time of a thread.

/// Pseudo-random number generator.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Returns a number between 0 and 1, more often near 0.
    pub(crate) fn skewed(&mut self) -> f32 {
        let [first, second] = [(); 2].map(|()| self.below(1 << 24) as f32 / (1 << 24) as f32);
        first * second
    }
}

/// Returns the CPU seconds of this thread.
pub(crate) fn cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid; the clock exists on all Linux and macOS systems.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
