use db::{Query, Value};
use domain::audit::{AuditFilter, Verifier};
use domain::evidence::Verdict;
use domain::page::{Limit, decode_cursor};
use domain::ports::AuditStore;
use domain::services::audit::AuditService;
use store::Store;

use crate::{again, at, draft, record, stores};

async fn verify(store: &Store) -> Result<i64, domain::audit::Break> {
    let head = store.head().await.unwrap();
    let mut verifier = Verifier::default();
    for entry in store.read_on(0, 10_000).await.unwrap() {
        verifier.check(&entry)?;
    }
    verifier.finish(head.as_ref().map(|(seq, hash)| (*seq, hash.as_str())))
}

#[tokio::test]
async fn the_chain_starts_empty_and_verifies() {
    for (store, _test) in stores().await {
        assert_eq!(store.head().await.unwrap(), None);
        assert_eq!(verify(&store).await, Ok(0));
    }
}

#[tokio::test]
async fn writers_at_once_in_two_processes_leave_one_unbroken_chain() {
    for (store, test) in stores().await {
        let other = again(&test, 99).await;
        let action = draft("test.done");
        let writers = (0..40).map(|n| if n % 2 == 0 { store.append(&action) } else { other.append(&action) });
        futures::future::try_join_all(writers).await.unwrap();
        assert_eq!(verify(&store).await, Ok(40), "{}", test.db.dialect());
    }
}

#[tokio::test]
async fn entries_come_back_as_they_were_sealed() {
    for (store, _test) in stores().await {
        let mut full = draft("replay.succeeded");
        full.record = Some(record("键'\"\\ <b>"));
        full.record_key = Some("nul\0inside".into());
        full.biz_type = Some("ORDER".into());
        full.biz_no = Some("O-1".into());
        full.reason = Some("because\n\u{1F4A5}".into());
        full.verdict = Some(Verdict::Absent);
        full.evidence_id = Some("e1".into());
        full.compensation_id = Some("c1".into());
        full.before = Some("PROCESSING".into());
        full.after = Some(String::new());
        full.result = Some("done".into());
        let sealed = store.append(&full).await.unwrap();
        assert_eq!(store.read_on(0, 10).await.unwrap(), [sealed]);
        assert_eq!(verify(&store).await, Ok(1));
    }
}

#[tokio::test]
async fn any_edit_of_any_column_is_found() {
    let edits: [(&str, Value); 12] = [
        ("happened_at", 1.into()),
        ("actor", "mallory".into()),
        ("action", "other".into()),
        ("record_ref", "0".into()),
        ("record", "bm9uc2Vuc2U".into()),
        ("record_key", "k2".into()),
        ("reason", None::<String>.into()),
        ("verdict", "found".into()),
        ("result", "other".into()),
        ("prev_hash", "0".into()),
        ("hash", "0".into()),
        ("seq", 99.into()),
    ];
    for (store, test) in stores().await {
        for (column, value) in &edits {
            let mut draft = draft("mark_succeeded.succeeded");
            draft.record = Some(record("k1"));
            draft.record_key = Some("k1".into());
            draft.reason = Some("why".into());
            draft.verdict = Some(Verdict::Absent);
            store.append(&draft).await.unwrap();
            let save = "CREATE TABLE saved AS SELECT * FROM audit_entries";
            test.run(&[save]).await;
            let edit = format!("UPDATE audit_entries SET {column} = ? WHERE seq = 1");
            test.db.execute(&Query::raw(edit, vec![value.clone()])).await.unwrap();
            assert!(verify(&store).await.is_err(), "{} {column}", test.db.dialect());
            test.run(&[
                "DELETE FROM audit_entries",
                "INSERT INTO audit_entries SELECT * FROM saved",
                "DROP TABLE saved",
            ])
            .await;
            assert!(verify(&store).await.is_ok());
        }
        test.run(&["DELETE FROM audit_entries WHERE seq = 12"]).await;
        assert!(verify(&store).await.is_err(), "a cut tail is found");
    }
}

#[tokio::test]
async fn nonsense_where_nothing_was_is_found() {
    for (store, test) in stores().await {
        for column in ["verdict", "record", "record_ref"] {
            store.append(&draft("session.signed_in")).await.unwrap();
            test.run(&[&format!("UPDATE audit_entries SET {column} = 'nonsense' WHERE seq = 1")]).await;
            assert!(verify(&store).await.is_err(), "{} {column}", test.db.dialect());
            test.run(&[&format!("UPDATE audit_entries SET {column} = NULL WHERE seq = 1")]).await;
            assert!(verify(&store).await.is_ok());
        }
    }
}

#[tokio::test]
async fn cells_of_another_kind_are_an_edit_and_no_failure() {
    for (store, test) in stores().await {
        // The others keep a column's type by themselves.
        if test.db.dialect() != db::Dialect::Sqlite {
            continue;
        }
        for edit in ["actor = x'ff'", "happened_at = 'noon'", "hash = x'00'", "seq = 'first'"] {
            store.append(&draft("test.done")).await.unwrap();
            store.append(&draft("test.done")).await.unwrap();
            test.run(&[&format!("UPDATE audit_entries SET {edit} WHERE seq = 1")]).await;
            assert!(verify(&store).await.is_err(), "{edit}");
            test.run(&["DELETE FROM audit_entries", "UPDATE audit_head SET seq = 0, hash = ''"]).await;
        }
    }
}

#[tokio::test]
async fn a_head_that_was_removed_or_set_back_is_found() {
    for (store, test) in stores().await {
        let audit = AuditService { store: std::sync::Arc::new(store.clone()) };
        for _ in 0..3 {
            store.append(&draft("test.done")).await.unwrap();
        }
        let noted = audit.anchor(3).await.unwrap().unwrap();
        assert_eq!(noted.to_string().parse::<domain::audit::Anchor>(), Ok(noted));
        assert_eq!(audit.anchor(4).await.unwrap(), None);
        assert_eq!(audit.verify().await.unwrap(), Ok(3));
        test.run(&["UPDATE audit_head SET seq = 0, hash = ''"]).await;
        assert!(audit.verify().await.unwrap().is_err(), "{}", test.db.dialect());
        let (seq, hash) = (2, audit.anchor(2).await.unwrap().unwrap().hash);
        test.run(&[&format!("UPDATE audit_head SET seq = {seq}, hash = '{hash}'")]).await;
        assert!(audit.verify().await.unwrap().is_err(), "{}", test.db.dialect());
        test.run(&["DELETE FROM audit_entries", "DELETE FROM audit_head"]).await;
        assert!(audit.verify().await.unwrap().is_err(), "{}", test.db.dialect());
    }
}

#[tokio::test]
async fn lists_are_paged_and_filtered() {
    for (store, _test) in stores().await {
        for n in 0..5 {
            let mut draft = draft(if n % 2 == 0 { "replay.intended" } else { "replayed" });
            draft.at = at(n);
            draft.actor = format!("op{}", n % 2);
            draft.record = Some(record(&format!("k{n}")));
            store.append(&draft).await.unwrap();
        }
        let mut seen = Vec::new();
        let mut before = None;
        loop {
            let page = store.list(&AuditFilter::default(), before, Limit::new(2).unwrap()).await.unwrap();
            seen.extend(page.items.iter().map(|entry| entry.seq));
            let Some(cursor) = page.next_cursor else { break };
            before = Some(decode_cursor(&cursor).unwrap());
        }
        assert_eq!(seen, [5, 4, 3, 2, 1]);
        let seqs = async |filter: AuditFilter| {
            let page = store.list(&filter, None, Limit::default()).await.unwrap();
            page.items.iter().map(|entry| entry.seq).collect::<Vec<_>>()
        };
        let any = AuditFilter::default;
        assert_eq!(seqs(AuditFilter { action: Some("replay".into()), ..any() }).await, [5, 3, 1]);
        assert_eq!(seqs(AuditFilter { action: Some("re%".into()), ..any() }).await, [0; 0]);
        assert_eq!(seqs(AuditFilter { actor: Some("op1".into()), ..any() }).await, [4, 2]);
        assert_eq!(seqs(AuditFilter { record: Some(record("k2")), ..any() }).await, [3]);
        assert_eq!(seqs(AuditFilter { from: Some(at(1)), to: Some(at(3)), ..any() }).await, [3, 2]);
    }
}
