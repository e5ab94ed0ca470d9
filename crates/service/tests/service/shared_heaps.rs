//! Two owners of the same heap: what one of them does decides neither whether the other's heap is restored nor whether it is cached.

use crate::fixture::{Fixture, LONG};
use heapstead_service::{Caller, ExecutionRecord, RunParameters};
use heapstead_types::{EngineId, HeapKey, Principal, Status};

/// Produces the same heap for every owner.
const CODE: &str = "var shared = 42";

fn bob(fixture: &Fixture) -> Caller {
    Caller { principal: "umbra/bob".parse().expect("an owner"), ..fixture.caller.clone() }
}

async fn run(fixture: &Fixture, caller: &Caller, code: &str, heap: Option<HeapKey>) -> ExecutionRecord {
    let heap = heap.map(|heap| heap.to_string());
    let execution =
        fixture.service.run(caller, RunParameters { code: code.into(), heap, ..RunParameters::default() }).await.expect("accepted");
    fixture.service.wait_for_run(caller, &execution, LONG).await
}

/// How many heaps were in the cache, of those that this restored.
async fn hits(fixture: &Fixture, work: impl Future<Output = ExecutionRecord>) -> u64 {
    let hits = async || {
        let metrics = fixture.service.metrics(&Principal::local()).await.expect("metrics");
        metrics.stores.expect("stores").heap_cache_hits
    };
    let before = hits().await;
    let record = work.await;
    assert_eq!(record.result.as_deref(), Some("42"), "{record:?}");
    hits().await - before
}

/// Story: the cache had one entry for all owners of a heap. An owner who had guessed the heap of another one and imported it saw in the time of its
/// first run that the other one had just used it. That the other one stored it again made the owner's next run slow.
#[tokio::test]
async fn a_heap_is_cached_for_the_owner_that_used_it() {
    let fixture = Fixture::with(|policy| policy.import_heaps = true).await;
    let (ann, bob) = (fixture.caller.clone(), bob(&fixture));
    let heap = run(&fixture, &ann, CODE, None).await.heap.expect("a heap");
    let exported = fixture.service.heaps().export(&ann, heap).await.expect("exported");
    let file = exported.read().await.expect("read");
    fixture.service.heaps().import(&bob, file, None).await.expect("imported");
    assert_eq!(hits(&fixture, run(&fixture, &ann, "shared", Some(heap))).await, 1, "its own run stored it");
    assert_eq!(hits(&fixture, run(&fixture, &bob, "shared", Some(heap))).await, 0, "another owner has it in the cache");
    assert_eq!(hits(&fixture, run(&fixture, &bob, "shared", Some(heap))).await, 1);
    for _ in 0..3 {
        assert_eq!(run(&fixture, &ann, CODE, None).await.heap, Some(heap), "stored again");
    }
    assert_eq!(hits(&fixture, run(&fixture, &bob, "shared", Some(heap))).await, 1, "another owner stored it again");
}

/// Story: the first owner who imported a heap decided for all which engine had written it. With an engine that is not this server's, another
/// owner's import could not be restored; and whoever named such an engine saw, if the heap was restored nevertheless, that another owner's run had
/// produced it.
#[tokio::test]
async fn an_owner_decides_about_the_engine_of_its_own_heap_only() {
    let fixture = Fixture::with(|policy| policy.import_heaps = true).await;
    let (ann, bob) = (fixture.caller.clone(), bob(&fixture));
    let carol = Caller { principal: "umbra/carol".parse().expect("an owner"), ..ann.clone() };
    // Made elsewhere, so that nobody has it here.
    let elsewhere = Fixture::new().await;
    let heap = run(&elsewhere, &elsewhere.caller, CODE, None).await.heap.expect("a heap");
    let exported = elsewhere.service.heaps().export(&elsewhere.caller, heap).await.expect("exported");
    let file = exported.read().await.expect("read");
    let engine = exported.engine.expect("an engine");
    let wrong: EngineId = engine.to_string().replacen("/natives-", "/natives-9", 1).parse().expect("an engine");
    let import = async |caller: &Caller, engine: Option<EngineId>| {
        let imported = fixture.service.heaps().import(caller, file.clone(), engine).await;
        assert_eq!(imported.expect("imported").heap, heap);
    };
    let restores = async |caller: &Caller| {
        let record = run(&fixture, caller, "shared", Some(heap)).await;
        assert!(record.status == Status::Completed || record.error.as_ref().is_some_and(|error| error.contains("engine")), "{record:?}");
        record.status == Status::Completed
    };
    import(&ann, Some(wrong)).await;
    assert!(!restores(&ann).await, "its engine is not this one");
    import(&bob, Some(engine)).await;
    import(&carol, None).await;
    assert!(restores(&bob).await && restores(&carol).await, "another owner named another engine");
    assert_eq!(run(&fixture, &bob, CODE, None).await.heap, Some(heap), "this engine produces it");
    assert!(!restores(&ann).await, "another owner produced it here");
    // Its own run is what an owner knows best.
    assert_eq!(run(&fixture, &ann, CODE, None).await.heap, Some(heap));
    assert!(restores(&ann).await);
}
