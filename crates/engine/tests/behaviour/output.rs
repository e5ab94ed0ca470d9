//! Console output: immediate, complete, in order and limited.

use super::support::{Chain, engine, job, run};
use heapstead_engine::{Event, Kind, Outcome};
use heapstead_types::Limits;
use std::time::{Duration, Instant};

#[tokio::test]
async fn output_arrives_during_the_run() {
    let engine = engine().await;
    let mut execution = engine
        .submit(job("console.log('first'); const t = Date.now(); while (Date.now() - t < 400); console.log('second')", Kind::Stateless))
        .expect("accepted");
    assert!(matches!(execution.next_event().await, Some(Event::Started { .. })), "nothing is written before the start");
    let Some(Event::Output(first)) = execution.next_event().await else { panic!("output comes first") };
    let seen = Instant::now();
    assert_eq!(first, b"first\n");
    let (rest, _) = execution.finish().await;
    assert_eq!(rest, b"second\n");
    assert!(seen.elapsed() > Duration::from_millis(300), "the first line arrived only at the end");
}

#[tokio::test]
async fn output_before_a_failure_or_a_timeout_is_kept() {
    let engine = engine().await;
    let (output, outcome) = run(&engine, "console.log('a'); throw 1", Kind::Stateful(None)).await;
    assert!(output == "a\n" && matches!(outcome, Outcome::Failed(_)));
    let mut looping = job("for (let i = 0; i < 1000; i++) console.log(i); for (;;);", Kind::Stateful(None));
    looping.limits.timeout_secs = 1;
    let (output, outcome) = engine.submit(looping).expect("accepted").finish().await;
    assert!(matches!(outcome, Outcome::TimedOut { timeout_secs: 1 }));
    assert_eq!(String::from_utf8(output).expect("UTF-8").lines().count(), 1000);
}

#[tokio::test]
async fn past_the_cap_the_run_continues_and_the_rest_is_dropped() {
    let engine = engine().await;
    let mut job = job("for (let i = 0; i < 100; i++) console.log('é'.repeat(50)); 'done'", Kind::Stateful(None));
    job.limits = Limits { output_bytes_max: 1000, ..job.limits };
    let mut execution = engine.submit(job).expect("accepted");
    let (mut output, mut dropped) = (Vec::new(), 0);
    loop {
        match execution.next_event().await.expect("an end") {
            Event::Output(text) => output.extend(text),
            Event::Started { .. } | Event::Recorded(..) => {}
            Event::OutputDropped => dropped += 1,
            Event::Ended(Outcome::Completed { result, .. }) => break assert_eq!(result, "\"done\""),
            Event::Ended(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(dropped, 1);
    assert!(output.len() <= 1000 && output.len() > 990 && String::from_utf8(output).is_ok(), "cut at a character near the cap");
}

#[tokio::test]
async fn many_small_writes_and_a_large_one_arrive_complete() {
    let mut chain = Chain::start().await;
    let output = chain.output("for (let i = 0; i < 20000; i++) console.log(i)").await;
    assert!(output.lines().map(str::parse::<u32>).eq((0..20000).map(Ok)));
    let output = chain.output("console.log('ü'.repeat(1_000_000))").await;
    assert_eq!(output.chars().count(), 1_000_001);
}
