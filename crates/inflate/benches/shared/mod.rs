//! Shared parts of the benchmarks of inflaters and of encoders: pseudo-random numbers, columns, and the CPU time of a
//! thread.

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

/// Name of a column, and the function from row to element.
pub(crate) type Column = (&'static str, fn(usize, &mut Noise) -> u32);

pub(crate) const COLUMNS: [Column; 8] = [
    ("charges in steps of 1/16", |_, noise| ((noise.skewed() * 40.0) as i32 as f32 / 16.0).to_bits()),
    ("fractions 1000/k", |_, noise| (1000.0 / (1 + (noise.skewed() * 150.0) as u32) as f32).to_bits()),
    ("ids, a third of them -5", |_, noise| if noise.below(3) == 0 { -5i32 as u32 } else { noise.below(910) as u32 }),
    ("counts", |_, noise| (noise.skewed() * 60.0) as u32),
    ("energies, half of them -5", |_, noise| {
        if noise.below(2) == 0 { (-5f32).to_bits() } else { (60.0 * (1.0 + noise.skewed())).to_bits() }
    }),
    (
        "lengths in runs of -5",
        |row, noise| {
            if row / 4 % 3 != 0 { (-5f32).to_bits() } else { (90.0 * noise.skewed()).to_bits() }
        },
    ),
    ("64-bit row numbers", |row, _| if row % 2 == 0 { row as u32 / 2 } else { 0 }),
    ("coordinates", |_, noise| (noise.below(1 << 24) as f32 / 10_000.0 - 800.0).to_bits()),
];

/// Returns the CPU seconds of this thread.
pub(crate) fn cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid; the clock exists on all Linux and macOS systems.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
