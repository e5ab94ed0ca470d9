//! A bounded resource that all callers share, divided so that no budget holder can use it up.
//!
//! A holder may take more as long as it then has no more than what is still free. So one holder alone gets half, the next one half of the
//! rest, and whoever comes later always finds something. There is nothing to configure, and nothing is reserved for holders that are absent.

use heapstead_types::BudgetHolder;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places, or bytes.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    by_all: u64,
    /// Without holders that have nothing.
    by_holder: HashMap<BudgetHolder, u64>,
}

impl Taken {
    fn add(&mut self, holder: &BudgetHolder, amount: u64) {
        *self.by_holder.entry(holder.clone()).or_default() += amount;
    }

    fn subtract(&mut self, holder: &BudgetHolder, amount: u64) {
        if let Some(own) = self.by_holder.get_mut(holder) {
            *own -= amount;
            if *own == 0 {
                self.by_holder.remove(holder);
            }
        }
    }
}

/// Why nothing more could be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// The holder already has as much as is left for others.
    ByHolder,
    /// Nothing is left.
    ByAll,
}

/// What a holder has taken, until this is dropped.
#[derive(Debug)]
pub struct Portion {
    budget: Arc<Budget>,
    holder: BudgetHolder,
    amount: u64,
}

impl Budget {
    pub fn new(total: u64) -> Arc<Self> {
        Arc::new(Self { total, taken: Mutex::default() })
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn take(self: &Arc<Self>, holder: BudgetHolder, amount: u64) -> Result<Portion, Exhausted> {
        let mut portion = self.portion(holder);
        portion.resize(amount)?;
        Ok(portion)
    }

    /// An empty portion, which can grow.
    pub fn portion(self: &Arc<Self>, holder: BudgetHolder) -> Portion {
        Portion { budget: self.clone(), holder, amount: 0 }
    }

    /// How much a holder has.
    pub fn taken_by(&self, holder: &BudgetHolder) -> u64 {
        self.lock().by_holder.get(holder).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Portion {
    /// Grows or shrinks it. Shrinking always succeeds; if growing does not, the portion is unchanged.
    pub fn resize(&mut self, amount: u64) -> Result<(), Exhausted> {
        let mut taken = self.budget.lock();
        let own = taken.by_holder.get(&self.holder).copied().unwrap_or_default();
        let by_all = taken.by_all - self.amount + amount;
        let by_holder = own - self.amount + amount;
        if amount > self.amount {
            let left = self.budget.total.checked_sub(by_all).ok_or(Exhausted::ByAll)?;
            // One request of a holder is always possible, as far as there is room for it.
            if own > 0 && by_holder > left {
                return Err(Exhausted::ByHolder);
            }
        }
        taken.by_all = by_all;
        match by_holder {
            0 => drop(taken.by_holder.remove(&self.holder)),
            _ => drop(taken.by_holder.insert(self.holder.clone(), by_holder)),
        }
        drop(taken);
        self.amount = amount;
        Ok(())
    }

    /// Gives it to another holder, which has to have room for it. If it has none, nothing changes.
    pub fn reassign(&mut self, holder: &BudgetHolder) -> Result<(), Exhausted> {
        if self.holder == *holder {
            return Ok(());
        }
        let mut taken = self.budget.lock();
        let own = taken.by_holder.get(holder).copied().unwrap_or_default();
        if own > 0 && own + self.amount > self.budget.total - taken.by_all {
            return Err(Exhausted::ByHolder);
        }
        taken.add(holder, self.amount);
        taken.subtract(&self.holder, self.amount);
        drop(taken);
        self.holder = holder.clone();
        Ok(())
    }

    /// Moves this amount, at most all of it, into a separate portion.
    pub fn split(&mut self, amount: u64) -> Self {
        let amount = amount.min(self.amount);
        self.amount -= amount;
        Self { budget: self.budget.clone(), holder: self.holder.clone(), amount }
    }

    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    pub fn amount(&self) -> u64 {
        self.amount
    }
}

impl Drop for Portion {
    fn drop(&mut self) {
        // Shrinking always succeeds.
        let _ = self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(number: u8) -> BudgetHolder {
        BudgetHolder::network([10, 0, 0, number].into())
    }

    /// Takes places one by one until it is refused.
    fn greedy(budget: &Arc<Budget>, number: u8) -> Vec<Portion> {
        std::iter::from_fn(|| budget.take(holder(number), 1).ok()).collect()
    }

    #[test]
    fn no_holder_can_take_what_the_next_one_needs() {
        let budget = Budget::new(64);
        let taken: Vec<_> = (0..6).map(|number| greedy(&budget, number)).collect();
        assert_eq!(taken.iter().map(Vec::len).collect::<Vec<_>>(), [32, 16, 8, 4, 2, 1]);
        assert_eq!(budget.take(holder(0), 1).err(), Some(Exhausted::ByHolder));
        let _last = budget.take(holder(9), 1).expect("the first place of a holder is granted as long as there is one");
        assert_eq!(budget.take(holder(10), 1).err(), Some(Exhausted::ByAll));
        drop(taken);
        let taken = budget.lock();
        assert_eq!((taken.by_all, taken.by_holder.len()), (1, 1), "portions are returned when they are dropped");
        drop(taken);
    }

    #[test]
    fn holders_that_grow_together_get_equal_parts() {
        let budget = Budget::new(90);
        let mut taken = [Vec::new(), Vec::new()];
        for _ in 0..90 {
            for (number, places) in taken.iter_mut().enumerate() {
                places.extend(budget.take(holder(number as u8), 1));
            }
        }
        assert_eq!(taken.map(|places| places.len()), [30, 30]);
    }

    #[test]
    fn a_portion_can_be_given_to_a_holder_that_has_room() {
        let budget = Budget::new(8);
        let mut first = greedy(&budget, 1);
        assert_eq!(first.len(), 4);
        let moved: Vec<_> = first.iter_mut().map(|portion| portion.reassign(&holder(2))).collect();
        assert_eq!(moved, [Ok(()); 4]);
        assert_eq!((budget.taken_by(&holder(1)), budget.taken_by(&holder(2))), (0, 4));
        let mut more = greedy(&budget, 1);
        assert_eq!(more.len(), 2, "what is left is divided again");
        assert_eq!(more[0].reassign(&holder(2)), Err(Exhausted::ByHolder));
        assert_eq!((budget.taken_by(&holder(1)), budget.taken_by(&holder(2))), (2, 4), "nothing has changed");
        drop((first, more));
        assert!(budget.lock().by_holder.is_empty());
    }

    #[test]
    fn a_part_of_a_portion_ends_separately() {
        let budget = Budget::new(100);
        let mut portion = budget.take(holder(1), 40).expect("room");
        let part = portion.split(30);
        assert_eq!((portion.amount(), part.amount(), budget.taken_by(&holder(1))), (10, 30, 40));
        assert_eq!(portion.split(11).amount(), 10);
        assert_eq!(budget.taken_by(&holder(1)), 30);
        drop((portion, part));
        assert_eq!(budget.taken_by(&holder(1)), 0);
    }

    #[test]
    fn a_portion_that_can_not_grow_is_unchanged() {
        let budget = Budget::new(100);
        let mut portion = budget.portion(holder(1));
        assert_eq!(portion.resize(101), Err(Exhausted::ByAll));
        assert_eq!(portion.resize(40), Ok(()));
        assert_eq!(portion.resize(51), Err(Exhausted::ByHolder));
        assert_eq!((portion.amount(), budget.taken_by(&holder(1))), (40, 40));
        assert_eq!(portion.resize(10), Ok(()));
        drop(portion);
        assert_eq!(budget.taken_by(&holder(1)), 0);
    }
}
