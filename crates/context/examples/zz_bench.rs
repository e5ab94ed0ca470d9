//! tmp
use heapstead_context::store::*;
use heapstead_context::*;
use std::collections::HashMap;
use std::time::Instant;
fn rec(id: SessionId, n: usize) -> Record {
    let mut r = Record::new(id, Timestamp::from_ms(1_800_000_000_000));
    for i in 0..12 { r.add_call(ToolCall{tool:"run_js".into(),args:serde_json::json!({"code":"const x = 1; x + 1","heap":"ab".repeat(32),"n":i}).as_object().unwrap().clone(),called_at:Timestamp::from_ms(1_800_000_000_000),result_summary:"Completed with the result 42. It printed 3 lines.".into()}); }
    for i in 0..n { r.add_resource(NewResource{resource_id:format!("doc-{i}"),resource_type:ResourceType::Document,content_hash:"ab".repeat(32),summary:"A document about whales.".into()},Timestamp::from_ms(1_800_000_000_000)).unwrap(); }
    r
}
fn p50(v: &mut Vec<u128>) -> u128 { v.sort(); v[v.len()/2] }
fn id(i: u32) -> SessionId { let mut b=[7;32]; b[..4].copy_from_slice(&i.to_be_bytes()); SessionId::from_bytes(b) }
#[tokio::main]
async fn main() {
  tokio::spawn(async {
    for n in [0usize, 20, 100] {
        let s = id(1); let bytes = serde_json::to_vec(&rec(s,n)).unwrap().len();
        // memory
        let mut map = HashMap::new(); let m = Memory::new(MemorySettings::default());
        for i in 0..1000 { map.insert(id(i), rec(id(i),n)); let d=Document::of(rec(id(i),n)).unwrap(); let x=id(i); m.replace(Access::new(&x,"t"),None,&d).await.unwrap(); }
        let c = Contexts::new(Metered::new(Audited::new(m)));
        let (mut a, mut b, mut b2) = (vec![],vec![],vec![]);
        for i in 0..20000u32 { let x=id(i*7%1000); let t=Instant::now(); let r=map.get(&x).cloned(); a.push(t.elapsed().as_nanos()); drop(r);
            let t=Instant::now(); let r=c.get(Access::new(&x,"t")).await.unwrap(); b.push(t.elapsed().as_nanos()); let t=Instant::now(); let rr=(*c.get(Access::new(&x,"t")).await.unwrap()).clone(); b2.push(t.elapsed().as_nanos()); drop(rr); drop(r);}
        println!("{bytes} bytes memory: bare {} ours {} ours+clone {}", p50(&mut a), p50(&mut b), p50(&mut b2));
        // sqlite
        let dir = tempfile::tempdir().unwrap(); let path=dir.path().join("x.db");
        let st = Sqlite::open(&path, SqliteSettings::default()).unwrap();
        for i in 0..200 { let x=id(i); st.replace(Access::new(&x,"t"),None,&Document::of(rec(x,n)).unwrap()).await.unwrap(); }
        let c = Contexts::new(Metered::new(Audited::new(st)));
        let (mut a, mut b) = (vec![],vec![]);
        {
        for i in 0..200u32 { let x=id(i); c.get(Access::new(&x,"t")).await.unwrap(); }
        for chunk in 0..100u32 {
            { let bare = rusqlite::Connection::open(&path).unwrap();
            let mut q = bare.prepare("SELECT record FROM context_records WHERE session_id = ?1").unwrap();
            for i in 0..100u32 { let x=id((chunk+i)*7%200); let t=Instant::now(); let v: Vec<u8> = q.query_row([x.as_bytes()], |r| r.get(0)).unwrap(); let e=t.elapsed().as_nanos(); if i>50 {a.push(e)}; drop(v); } }
            for i in 0..100u32 { let x=id((chunk+i)*7%200); let t=Instant::now(); let r=c.get(Access::new(&x,"t")).await.unwrap(); let e=t.elapsed().as_nanos(); if i>50 {b.push(e)}; drop(r); }
        } }
        println!("{bytes} bytes sqlite: bare {} ours {}", p50(&mut a), p50(&mut b));
        if let Ok(url)=std::env::var("REDIS_URL") {
            let st = Redis::open(&url,&RedisSettings::default()).unwrap();
            for i in 0..200 { let x=id(i); let _=st.remove(Access::new(&x,"t")).await; st.replace(Access::new(&x,"t"),None,&Document::of(rec(x,n)).unwrap()).await.unwrap(); }
            let c = Contexts::new(Metered::new(Audited::new(st)));
            let mut man = redis::Client::open(url.as_str()).unwrap().get_connection_manager().await.unwrap();
            let (mut a, mut b) = (vec![],vec![]);
            for i in 0..10000u32 { let x=id(i*7%200); let t=Instant::now(); let v: Vec<u8>=redis::cmd("GET").arg(format!("mcp:ctx:v1:{x}")).query_async(&mut man).await.unwrap(); a.push(t.elapsed().as_nanos()); drop(v);
              let t=Instant::now(); let r=c.get(Access::new(&x,"t")).await.unwrap(); b.push(t.elapsed().as_nanos()); drop(r);}
            println!("{bytes} bytes redis: bare {} ours {}", p50(&mut a), p50(&mut b));
        }
    }
    for held in [100u32,10_000,100,10_000] {
        let m = Memory::new(MemorySettings{sessions_max:20000,memory_bytes_max:4<<30,..Default::default()});
        for i in 0..held { let x=id(i); m.replace(Access::new(&x,"t"),None,&Document::of(rec(x,5)).unwrap()).await.unwrap(); }
        let c = Contexts::new(m); let mut b=vec![];
        for i in 0..100000u32 { let x=id(i.wrapping_mul(7919)%held); let t=Instant::now(); let r=c.get(Access::new(&x,"t")).await.unwrap(); b.push(t.elapsed().as_nanos()); drop(r);}
        println!("held {held}: {}", p50(&mut b));
    }
    // recorder
    let c=Contexts::new(Memory::new(MemorySettings::default())); let r=Recorder::start(c); let args=serde_json::json!({"code":"const x = 1;\n".repeat(200),"heap":"ab".repeat(32)}); let res=serde_json::json!({"structuredContent":{"status":"completed","result":"42","execution_id":"x"}}); let x=id(1);
    let mut v=vec![]; for _ in 0..3000 { let t=Instant::now(); r.record(ToolEnd{session:&x,tenant:"",tool:"run_js",args:args.as_object().unwrap(),called_at:Timestamp::from_ms(0),outcome:Outcome::Result(&res)}); v.push(t.elapsed().as_nanos()); }
    r.flush().await; println!("record(): {} ns {:?}", p50(&mut v), r.counts());
  }).await.unwrap();
}
