//! Noise as machines make it, in the order of time.

use linerate_lab::stats::{Generator, Pairing, schedule};

/// The kinds of noise; each has a standard deviation of about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noise {
    /// Bell-shaped.
    Normal,
    /// Log-normal with sigma 0.9 (skewness 5): a floor and a long tail.
    Skewed,
    /// Normal, one in twenty 10 standard deviations low: a neighbour wakes up.
    Outliers,
    /// Normal over a steady slide of 10 standard deviations in 40 trials.
    Drift,
    /// Autocorrelated (first order, 0.8).
    Autocorrelated,
    /// Normal, rounded to whole standard deviations: many ties.
    Coarse,
}

pub(crate) const NOISES: [Noise; 6] =
    [Noise::Normal, Noise::Skewed, Noise::Outliers, Noise::Drift, Noise::Autocorrelated, Noise::Coarse];

/// A source of trial values around `level`, with noise of `spread` (a share of the level).
#[derive(Debug, Clone)]
pub(crate) struct Process {
    noise: Noise,
    spread: f64,
    generator: Generator,
    memory: f64,
    time: f64,
}

impl Process {
    pub(crate) fn new(noise: Noise, spread: f64, seed: u64, run: u64) -> Self {
        let mut generator = Generator::stream(seed, run);
        let memory = normal(&mut generator);
        Self { noise, spread, generator, memory, time: 0.0 }
    }

    /// The next trial's value with a true level of `level`.
    pub(crate) fn trial(&mut self, level: f64) -> f64 {
        level * (1.0 + self.spread * self.step()).max(1e-3)
    }

    pub(crate) fn trials(&mut self, level: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.trial(level)).collect()
    }

    fn step(&mut self) -> f64 {
        let z = normal(&mut self.generator);
        self.time += 1.0;
        match self.noise {
            Noise::Normal => z,
            Noise::Skewed => {
                let (mean, square) = (0.405_f64.exp(), 0.81_f64.exp());
                ((0.9 * z).exp() - mean) / (mean * (square - 1.0).sqrt())
            }
            Noise::Outliers if self.generator.below(20) == 0 => z - 10.0,
            Noise::Outliers => z,
            Noise::Drift => z - self.time / 4.0,
            Noise::Autocorrelated => {
                self.memory = 0.8 * self.memory + 0.6 * z;
                self.memory
            }
            Noise::Coarse => z.round(),
        }
    }
}

/// Base and new values of `blocks` repeats each, new at `ratio` times base: interleaved in randomised blocks, or base
/// first and new afterwards.
pub(crate) fn measure(
    process: &mut Process,
    blocks: usize,
    ratio: f64,
    pairing: Pairing,
    seed: u64,
) -> [Vec<f64>; 2] {
    let levels = [1_000.0, 1_000.0 * ratio];
    if pairing == Pairing::Separate {
        return levels.map(|level| process.trials(level, blocks));
    }
    let mut values = [Vec::new(), Vec::new()];
    for slot in schedule(2, blocks as u32, seed) {
        values[slot.combination].push(process.trial(levels[slot.combination]));
    }
    values
}

/// Standard normal (Box and Muller).
fn normal(generator: &mut Generator) -> f64 {
    let radius = (-2.0 * (1.0 - generator.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * generator.unit()).cos()
}
