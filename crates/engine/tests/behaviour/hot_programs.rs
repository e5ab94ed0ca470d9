//! Random programs that V8 optimises: with a snapshot after every turn, live, stateless in one run, and interpreted, they print the same, down to
//! the positions in stacks. `HEAPSTEAD_SEED=n` repeats a failure.

mod things;

use super::support::{engine, engine_with, job, run, torture};
use heapstead_engine::{Engine, HeapImage, Kind, LiveWorker, Outcome, ZygoteSettings};
use heapstead_types::BudgetHolder;
use heapstead_types::limits::HEAP_MB_DEFAULT;
use std::time::Instant;
use things::{THINGS, Thing};

const TURNS: usize = 4;

#[tokio::test]
async fn hot_code_does_the_same_with_and_without_snapshots() {
    let optimising = engine().await;
    let interpreting = engine_with(|config| config.settings = ZygoteSettings { stateful_jit: false, ..ZygoteSettings::default() }).await;
    let seed = std::env::var("HEAPSTEAD_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = seed.unwrap_or_else(|| u64::from(std::process::id()));
    let count = match (seed, torture()) {
        (Some(_), _) => 1,
        (None, true) => 1500,
        (None, false) => 30,
    };
    println!("HEAPSTEAD_SEED={first}, {count} programs");
    let begun = Instant::now();
    for seed in first..first + count {
        let turns = Random(seed).program();
        let whole = turns.concat();
        let (printed, Outcome::Completed { result, .. }) = run(&optimising, &whole, Kind::Stateless).await else {
            panic!("HEAPSTEAD_SEED={seed}: the program does not complete\n{whole}")
        };
        for (how, seen) in [
            ("with snapshots", with_snapshots(&optimising, &turns).await),
            ("interpreted", with_snapshots(&interpreting, &turns).await),
            ("live", live(&optimising, &turns).await),
        ] {
            let seen = seen.unwrap_or_else(|ended| panic!("HEAPSTEAD_SEED={seed}, {how}: {ended}\n{whole}"));
            assert_eq!(seen, (printed.clone(), result.clone()), "HEAPSTEAD_SEED={seed}, {how}\n{whole}");
        }
    }
    println!("{count} programs took {:.1?}", begun.elapsed());
}

/// Everything that the turns print, and the result of the last one. Each runs on the heap of the one before.
async fn with_snapshots(engine: &Engine, turns: &[String]) -> Result<(String, String), String> {
    let (mut printed, mut last, mut heap) = (String::new(), String::new(), None::<HeapImage>);
    for (turn, code) in in_place(turns).enumerate() {
        match run(engine, &code, Kind::Stateful(heap)).await {
            (output, Outcome::Completed { result, heap: produced, .. }) => {
                printed += &output;
                (last, heap) = (result, produced);
            }
            (output, other) => return Err(format!("turn {turn} ended as {other:?} after {output}")),
        }
    }
    Ok((printed, last))
}

/// The same in a live worker. Between the turns a clone writes a snapshot, which must not affect it.
async fn live(engine: &Engine, turns: &[String]) -> Result<(String, String), String> {
    let live: LiveWorker =
        engine.open_live(&BudgetHolder::default(), None, HEAP_MB_DEFAULT).await.map_err(|failure| failure.to_string())?;
    let (mut printed, mut last) = (String::new(), String::new());
    for (turn, code) in in_place(turns).enumerate() {
        match engine.submit(job(&code, Kind::Live(live.clone()))).expect("accepted").finish().await {
            (output, Outcome::Completed { result, turn: Some(turn), .. }) => {
                printed += &String::from_utf8_lossy(&output);
                last = result;
                turn.commit().await.map_err(|failure| failure.to_string())?;
            }
            (_, other) => return Err(format!("turn {turn} ended as {other:?}")),
        }
        if turn == 1 {
            live.snapshot().await.map_err(|failure| failure.to_string())?;
        }
    }
    Ok((printed, last))
}

/// Each turn below as many empty lines as the ones before have, so that positions are those of the whole program.
fn in_place(turns: &[String]) -> impl Iterator<Item = String> {
    turns.iter().scan(0, |above, turn| {
        let code = "\n".repeat(*above) + turn;
        *above += turn.matches('\n').count();
        Some(code)
    })
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    /// Turns that declare things and make them hot, then use them, with the types that they were optimised for and with others.
    fn program(&mut self) -> Vec<String> {
        let mut things: Vec<(usize, &Thing)> = Vec::new();
        (0..TURNS).map(|turn| self.turn(turn, &mut things)).collect()
    }

    fn turn(&mut self, turn: usize, things: &mut Vec<(usize, &'static Thing)>) -> String {
        let mut code = String::new();
        for _ in 0..[3, 1, 1, 0][turn] {
            let (number, thing) = (things.len(), &THINGS[self.below(THINGS.len())]);
            things.push((number, thing));
            code += &self.filled(thing.declare, number);
            code += &self.filled(thing.hot, number);
        }
        for _ in 0..[1, 4, 5, 6][turn] {
            let (number, thing) = things[self.below(things.len())];
            let used = if self.below(4) == 0 { thing.hot } else { thing.uses[self.below(thing.uses.len())] };
            code += &self.filled(used, number);
        }
        code + "'end';\n"
    }

    fn filled(&mut self, text: &str, number: usize) -> String {
        let kinds = ["Int8Array", "Uint8ClampedArray", "Int16Array", "Uint32Array", "Float32Array", "Float64Array", "Float16Array"];
        let text = text.replace("$n", &number.to_string()).replace("$T", kinds[self.below(kinds.len())]);
        text.replace("$x", &(1 + self.below(9)).to_string()).replace("$y", &(1 + self.below(99)).to_string()) + "\n"
    }
}
