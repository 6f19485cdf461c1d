use domain::ports::{AuditStore, User, UserStore};
use domain::roles::Role;

use crate::{draft, stores};

#[tokio::test]
async fn users_are_replaced_and_tokens_found_by_their_hash() {
    for (store, test) in stores().await {
        let mut user = User { name: "Ann".into(), role: Role::Viewer, password_hash: "$argon2id$…".into() };
        store.put_user(&user, &draft("user.put")).await.unwrap();
        user.role = Role::Admin;
        store.put_user(&user, &draft("user.put")).await.unwrap();
        assert_eq!(store.user("Ann").await.unwrap().as_ref(), Some(&user), "{}", test.db.dialect());
        assert_eq!(store.user("ann").await.unwrap(), None, "names differ by case");
        assert_eq!(store.users().await.unwrap(), [user]);
        store.put_token("ab12", "ci", Role::Operator, &draft("token.created")).await.unwrap();
        assert_eq!(store.token("ab12").await.unwrap(), Some(("ci".into(), Role::Operator)));
        assert_eq!(store.token("AB12").await.unwrap(), None);
        assert_eq!(store.head().await.unwrap().unwrap().0, 3);
    }
}

#[tokio::test]
async fn hostile_names_are_data_and_never_a_fault_of_ours() {
    for (store, _test) in stores().await {
        for name in ["' OR 1=1 --", "nul\0", "\u{1F4A5}", &"x".repeat(10_000)] {
            match store.user(name).await {
                Ok(found) => assert_eq!(found, None),
                Err(e) => assert_eq!(e.status(), 400, "{e}"),
            }
        }
    }
}
