//! A bounded map in two generations: what was not touched while a generation filled up is forgotten with the next.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Holds at most `max` of weight, each generation half of it.
#[derive(Debug)]
pub(crate) struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    young_weight: usize,
    max: usize,
}

impl<K: Hash + Eq, V> Generations<K, V> {
    pub(crate) fn new(max: usize) -> Self {
        Generations { young: HashMap::new(), old: HashMap::new(), young_weight: 0, max }
    }

    /// The value of `key`, made young again; `weight` is what it was inserted with.
    pub(crate) fn get<Q>(&mut self, key: &Q, weight: impl Fn(&V) -> usize) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            let weight = weight(&value);
            self.insert(key, value, weight);
        }
        self.young.get_mut(key)
    }

    /// Forgets older entries to make room; an entry heavier than half of all is not taken in.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) {
        if weight > self.max / 2 {
            return;
        }
        if self.young_weight + weight > self.max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_weight = 0;
        }
        self.young_weight += weight;
        self.old.remove(key.borrow());
        self.young.insert(key, value);
    }

    pub(crate) fn remove<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        // Its weight counts until the generation ends, so the bound holds all the more.
        self.young.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_is_bounded_and_what_is_used_stays() {
        let mut map = Generations::new(20);
        for n in 0..1000 {
            map.insert(n, n, 1);
            assert!(map.get(&0, |_| 1).is_some());
            assert!(map.young.len() + map.old.len() <= 20);
        }
        assert!(map.get(&999, |_| 1).is_some());
        assert!(map.get(&500, |_| 1).is_none());
        map.insert(-1, -1, 11);
        assert!(map.get(&-1, |_| 11).is_none());
        map.remove(&0);
        assert!(map.get(&0, |_| 1).is_none());
    }
}
