//! A bounded resource that no holder can use up: a part of it is reserved for holders that use little.
//!
//! A pool with several owners reserves a quarter of itself. Once the rest is used, a holder may take from the reserve only what keeps all that
//! it has within one eighth of the reserve. So a holder that has nothing gets an eighth of the reserve immediately, unless at least eight others
//! hold theirs, whatever a ninth does with the rest.

/// The reserve is one part in this many.
const RESERVE_DIVISOR: u64 = 4;
/// How many holders can use the reserve at the same time.
const RESERVE_HOLDERS: u64 = 8;

/// Whether a pool has to protect its holders from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// There is only one owner, or none is to be protected: nothing is reserved.
    OneOwner,
    SeveralOwners,
}

/// Where an amount was taken from, and is returned to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Common,
    Reserve,
}

#[derive(Debug)]
pub struct Pool {
    common_max: u64,
    common_free: u64,
    reserve_free: u64,
    /// What a holder may have in all while it takes from the reserve.
    holder_part: u64,
}

impl Pool {
    /// `part_min` is the least that a holder's part of the reserve has to hold to be of use, such as the memory of one run.
    pub fn new(max: u64, sharing: Sharing, part_min: u64) -> Self {
        let reserve = match sharing {
            // A single place can't be divided: then holders only take turns.
            Sharing::SeveralOwners if max > 1 => (max / RESERVE_DIVISOR).max(1),
            _ => 0,
        };
        let holder_part = (reserve / RESERVE_HOLDERS).max(part_min).min(reserve);
        Self { common_max: max - reserve, common_free: max - reserve, reserve_free: reserve, holder_part }
    }

    /// The largest amount that can ever be taken at once.
    pub fn amount_max(&self) -> u64 {
        self.common_max
    }

    /// From which section a holder that already has `held` can take `amount` now.
    pub fn section_for(&self, held: u64, amount: u64) -> Option<Section> {
        [Section::Common, Section::Reserve].into_iter().find(|section| self.fits(*section, held, amount))
    }

    pub fn fits(&self, section: Section, held: u64, amount: u64) -> bool {
        match section {
            Section::Common => amount <= self.common_free,
            Section::Reserve => amount <= self.reserve_free && self.may_use_reserve(held, amount),
        }
    }

    /// Whether a holder that has `held` may take `amount` from the reserve once that much is free there.
    pub fn may_use_reserve(&self, held: u64, amount: u64) -> bool {
        held + amount <= self.holder_part
    }

    pub fn take(&mut self, section: Section, amount: u64) {
        *self.free(section) -= amount;
    }

    pub fn release(&mut self, section: Section, amount: u64) {
        *self.free(section) += amount;
    }

    fn free(&mut self, section: Section) -> &mut u64 {
        match section {
            Section::Common => &mut self.common_free,
            Section::Reserve => &mut self.reserve_free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_may_use_everything() {
        let pool = Pool::new(64, Sharing::OneOwner, 1);
        assert_eq!((pool.amount_max(), pool.section_for(0, 64)), (64, Some(Section::Common)));
    }

    #[test]
    fn the_reserve_is_a_quarter_for_eight_holders_and_smaller_pools_have_fewer() {
        for (max, common, reserve, part) in
            [(64, 48, 16, 2), (1000, 750, 250, 31), (16, 12, 4, 1), (4, 3, 1, 1), (2, 1, 1, 1), (1, 1, 0, 0), (0, 0, 0, 0)]
        {
            let pool = Pool::new(max, Sharing::SeveralOwners, 1);
            assert_eq!((pool.common_free, pool.reserve_free, pool.holder_part), (common, reserve, part), "{max}");
        }
        assert_eq!(Pool::new(1000, Sharing::SeveralOwners, 100).holder_part, 100);
        assert_eq!(Pool::new(100, Sharing::SeveralOwners, 100).holder_part, 25, "never more than the reserve");
    }

    #[test]
    fn a_holder_takes_from_the_reserve_only_within_its_part() {
        let mut pool = Pool::new(64, Sharing::SeveralOwners, 1);
        pool.take(Section::Common, 48);
        assert_eq!(pool.section_for(48, 1), None, "the one that has the rest");
        for holder in 0..8 {
            for held in 0..2 {
                assert_eq!(pool.section_for(held, 1), Some(Section::Reserve), "holder {holder} has {held}");
                pool.take(Section::Reserve, 1);
            }
            assert_eq!(pool.section_for(2, 1), None, "holder {holder}");
        }
        assert_eq!(pool.section_for(0, 1), None, "eight others hold their parts");
        pool.release(Section::Reserve, 1);
        assert_eq!(pool.section_for(0, 1), Some(Section::Reserve));
    }
}
