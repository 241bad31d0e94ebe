//! Numbers as expressions: sums of rational multiples of products of roots, exponentials and values of gelu.
//!
//! A ball of any precision cannot tell that two irrational numbers are equal, nor that an irrational part cancels and leaves a
//! tie. A form can: like terms are gathered, so a difference of equal forms is zero, and a form without irrational terms is a
//! rational number. Rules, each an identity of real numbers:
//! - sqrt(p / q) = sqrt(p q) / q; sqrt(M) sqrt(N) = g sqrt(M N / g^2), g = gcd(M, N), and squares leave the root;
//! - sqrt(F)^2 = F; exp(F) exp(G) = exp(F + G);
//! - gelu(F) = F + gelu(-F), for both forms of gelu: x Phi(x) - (-x) Phi(-x) = x, and tanh is odd;
//! - a reciprocal of a sum of two square roots by its conjugate; that of any other sum F is kept as a factor F^-1.
//!
//! Different forms may still be equal numbers (the list of rules is not complete, and 1 / F is not divided out), so nothing
//! follows from a form that is not zero, or not rational.
//!
//! A form that would have more than [`MOST_TERMS`] terms, or more than [`MOST_WEIGHT`] factors in all, is given up.

use std::cmp::Ordering;
use std::sync::Arc;

use dashu_base::{Gcd, SquareRoot, UnsignedAbs};
use dashu_int::{IBig, UBig};

use super::ratio::Ratio;

/// Working precision from which on forms are kept beside balls: nearly every element is decided before.
pub(super) const FORM_PRECISION: usize = 512;

const MOST_TERMS: usize = 64;

const MOST_WEIGHT: usize = 1024;

/// A function whose value at a form stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Function {
    /// The square root, of a positive form.
    Root,
    /// The exponential.
    Exp,
    /// x Phi(x).
    Gelu,
    /// gelu's tanh form.
    GeluTanh,
    /// The form itself; a factor of negative exponent only.
    Whole,
}

/// A function at a form.
#[derive(Debug, Clone)]
struct Atom(Arc<(Function, Form)>);

impl Ord for Atom {
    fn cmp(&self, other: &Atom) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.0.cmp(&other.0) }
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Atom) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Atom) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Atom {}

/// Factors with their exponents, in the order of the atoms; none is 1.
type Product = Vec<(Atom, i32)>;

/// A sum of products with rational coefficients; without terms it is zero.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    /// In the order of the products, all of them different.
    terms: Vec<(Product, Ratio)>,
}

impl Form {
    pub(super) const ZERO: Form = Form { terms: Vec::new() };

    pub(super) fn rational(x: Ratio) -> Form {
        Form { terms: vec![(Vec::new(), x)] }
    }

    /// The number, where the form has no irrational term: `Some(None)` is zero.
    pub(super) fn as_rational(&self) -> Option<Option<&Ratio>> {
        match &self.terms[..] {
            [] => Some(None),
            [(product, x)] if product.is_empty() => Some(Some(x)),
            _ => None,
        }
    }

    /// Number of factors, those within factors counted too.
    pub(super) fn weight(&self) -> usize {
        self.terms
            .iter()
            .map(|(product, _)| 1 + product.iter().map(|(atom, _)| 1 + atom.0.1.weight()).sum::<usize>())
            .sum()
    }

    /// Bits of the coefficients, about.
    pub(super) fn bits(&self) -> usize {
        self.terms
            .iter()
            .map(|(product, x)| x.bits() + product.iter().map(|(atom, _)| atom.0.1.bits()).sum::<usize>())
            .sum()
    }

    fn small(self) -> Option<Form> {
        (self.terms.len() <= MOST_TERMS && self.weight() <= MOST_WEIGHT).then_some(self)
    }

    pub(super) fn neg(self) -> Form {
        Form { terms: self.terms.into_iter().map(|(product, x)| (product, x.neg())).collect() }
    }

    pub(super) fn add(&self, other: &Form) -> Option<Form> {
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(l), Some(r)) => l.0.cmp(&r.0),
            };
            match order {
                Ordering::Less => terms.extend(left.next().cloned()),
                Ordering::Greater => terms.extend(right.next().cloned()),
                Ordering::Equal => {
                    let (l, r) = (left.next()?, right.next()?);
                    if let Some(sum) = l.1.add(&r.1).ok()? {
                        terms.push((l.0.clone(), sum));
                    }
                }
            }
        }
        Form { terms }.small()
    }

    fn scaled(&self, by: &Ratio) -> Option<Form> {
        let terms =
            self.terms.iter().map(|(p, x)| Some((p.clone(), x.mul(by).ok()?))).collect::<Option<_>>()?;
        Some(Form { terms })
    }

    pub(super) fn mul(&self, other: &Form) -> Option<Form> {
        if self.terms.len() * other.terms.len() > MOST_TERMS * MOST_TERMS {
            return None;
        }
        let mut sum = Form::ZERO;
        for (p, x) in &self.terms {
            for (q, y) in &other.terms {
                let xy = x.mul(y).ok()?;
                sum = sum.add(&multiplied(p, q)?.scaled(&xy)?)?;
            }
        }
        Some(sum)
    }

    /// 1 / self, where that is not zero.
    pub(super) fn inverse(&self) -> Option<Form> {
        match &self.terms[..] {
            [] => None,
            [(product, x)] => {
                let mut inverse = Form::rational(x.recip());
                for (atom, exponent) in product {
                    inverse = inverse.mul(&atom.power(-exponent)?)?;
                }
                Some(inverse)
            }
            [(p, x), (q, y)] if is_root_or_one(p) && is_root_or_one(q) => {
                let one = |product: &Product, x: &Ratio| Form { terms: vec![(product.clone(), x.clone())] };
                let (left, right) = (one(p, x), one(q, y));
                let norm = left.mul(&left)?.add(&right.mul(&right)?.neg())?;
                let norm = norm.as_rational()??.recip();
                left.add(&right.neg())?.scaled(&norm)
            }
            [(_, lead), ..] => {
                let by = lead.recip();
                Form { terms: vec![(vec![(Atom::new(Function::Whole, self.scaled(&by)?), -1)], by)] }.small()
            }
        }
    }

    /// A function of the form; the root of a positive number only.
    pub(super) fn apply(&self, function: Function) -> Option<Form> {
        match function {
            Function::Root => {
                let Some((_, lead)) = self.terms.first() else { return Some(Form::ZERO) };
                let lead = if lead.is_negative() { lead.clone().neg() } else { lead.clone() };
                let factor = root_of_rational(&lead)?;
                let rest = self.scaled(&lead.recip())?;
                if rest.as_rational().is_some() {
                    return Some(factor);
                }
                factor.mul(&Form::atom(Function::Root, rest))
            }
            Function::Gelu | Function::GeluTanh => match self.terms.first() {
                None => Some(Form::ZERO),
                Some((_, lead)) if lead.is_negative() => self.add(&Form::atom(function, self.clone().neg())),
                Some(_) => Form::atom(function, self.clone()).small(),
            },
            Function::Exp if self.terms.is_empty() => Form::rational(Ratio::from_int(1)?).small(),
            Function::Exp | Function::Whole => Form::atom(function, self.clone()).small(),
        }
    }

    fn atom(function: Function, argument: Form) -> Form {
        let one = Ratio::from_int(1).expect("1 is not 0");
        Form { terms: vec![(vec![(Atom::new(function, argument), 1)], one)] }
    }
}

impl Atom {
    fn new(function: Function, argument: Form) -> Atom {
        Atom(Arc::new((function, argument)))
    }

    fn function(&self) -> Function {
        self.0.0
    }

    fn argument(&self) -> &Form {
        &self.0.1
    }

    /// The atom to a power.
    fn power(&self, exponent: i32) -> Option<Form> {
        let argument = self.argument();
        let one = Form::rational(Ratio::from_int(1)?);
        let repeated =
            |form: &Form, times: i32| (0..times).try_fold(one.clone(), |product, _| product.mul(form));
        match self.function() {
            Function::Exp => argument.scaled(&Ratio::from_int(i64::from(exponent))?)?.apply(Function::Exp),
            Function::Whole if exponent > 0 => repeated(argument, exponent),
            Function::Root if exponent % 2 == 0 || argument.as_rational().is_some() => {
                let halves = exponent.div_euclid(2);
                let whole = if halves < 0 {
                    repeated(&argument.inverse()?, -halves)?
                } else {
                    repeated(argument, halves)?
                };
                if exponent % 2 == 0 { Some(whole) } else { whole.mul(&self.alone(1)) }
            }
            Function::Root if exponent.abs() > 1 => {
                let sign = exponent.signum();
                self.power(exponent - sign)?.mul(&self.alone(sign))
            }
            _ => Some(self.alone(exponent)),
        }
    }

    fn alone(&self, exponent: i32) -> Form {
        let one = Ratio::from_int(1).expect("1 is not 0");
        Form { terms: vec![(vec![(self.clone(), exponent)], one)] }
    }
}

/// 1, or the root of an integer?
fn is_root_or_one(product: &Product) -> bool {
    match &product[..] {
        [] => true,
        [(atom, 1)] => atom.function() == Function::Root && atom.argument().as_rational().is_some(),
        _ => false,
    }
}

/// The product of two products.
fn multiplied(p: &Product, q: &Product) -> Option<Form> {
    let mut factors: Product = Vec::with_capacity(p.len() + q.len());
    let mut rest: Vec<Form> = Vec::new();
    let (mut roots, mut exponents): (Vec<&Form>, Vec<&Form>) = (Vec::new(), Vec::new());
    for (atom, exponent) in p.iter().chain(q) {
        match atom.function() {
            // Both have the exponent 1 in every product.
            Function::Root if atom.argument().as_rational().is_some() => roots.push(atom.argument()),
            Function::Exp => exponents.push(atom.argument()),
            _ => match factors.iter_mut().find(|(other, _)| other == atom) {
                Some((_, e)) => *e += exponent,
                None => factors.push((atom.clone(), *exponent)),
            },
        }
    }
    let mut kept: Product = Vec::with_capacity(factors.len());
    for (atom, exponent) in factors {
        if atom.function() == Function::Root && exponent.abs() > 1 {
            rest.push(atom.power(exponent)?);
        } else if exponent != 0 {
            kept.push((atom, exponent));
        }
    }
    let mut factors = kept;
    let mut coefficient = Ratio::from_int(1)?;
    match roots[..] {
        [] => {}
        [n] => factors.push((Atom::new(Function::Root, n.clone()), 1)),
        [m, n] => {
            let integer = |form: &Form| {
                form.as_rational().flatten().map(|x| (x.num.clone().unsigned_abs()) << x.exp as usize)
            };
            let (m, n) = (integer(m)?, integer(n)?);
            let g = m.clone().gcd(&n);
            let (square, root) = without_squares((m / &g) * (n / &g));
            coefficient = Ratio::dyadic(IBig::from(g * square), 0)?;
            if !root.is_one() {
                factors.push((
                    Atom::new(Function::Root, Form::rational(Ratio::dyadic(IBig::from(root), 0)?)),
                    1,
                ));
            }
        }
        _ => return None,
    }
    match exponents[..] {
        [] => {}
        [x] => factors.push((Atom::new(Function::Exp, x.clone()), 1)),
        [x, y] => {
            let sum = x.add(y)?;
            if !sum.terms.is_empty() {
                factors.push((Atom::new(Function::Exp, sum), 1));
            }
        }
        _ => return None,
    }
    factors.sort();
    let product = Form { terms: vec![(factors, coefficient)] }.small()?;
    rest.iter().try_fold(product, |product, factor| product.mul(factor))
}

/// sqrt(x) as a rational number times the root of an integer.
fn root_of_rational(x: &Ratio) -> Option<Form> {
    let (half, odd) = (x.exp.div_euclid(2), x.exp.rem_euclid(2));
    let radicand = (x.num.clone().unsigned_abs() * &x.den) << odd as usize;
    let (square, root) = without_squares(radicand);
    let coefficient = Ratio::new(IBig::from(square), x.den.clone(), half)?;
    if root.is_one() {
        return Some(Form::rational(coefficient));
    }
    let root = Form::rational(Ratio::dyadic(IBig::from(root), 0)?);
    Form::atom(Function::Root, root).scaled(&coefficient)
}

/// n = s^2 m: (s, m), m without the squares of the first primes and no square itself.
fn without_squares(mut n: UBig) -> (UBig, UBig) {
    let mut square = UBig::ONE;
    for prime in [2u32, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47] {
        let power = UBig::from(prime * prime);
        while (&n % &power).is_zero() {
            n /= &power;
            square *= UBig::from(prime);
        }
    }
    let root = n.sqrt();
    if &root * &root == n { (square * root, UBig::ONE) } else { (square, n) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n(x: i64) -> Form {
        Ratio::from_int(x).map_or(Form::ZERO, Form::rational)
    }

    fn root(x: i64) -> Form {
        n(x).apply(Function::Root).expect("small")
    }

    fn times(a: &Form, b: &Form) -> Form {
        a.mul(b).expect("small")
    }

    fn sum(a: &Form, b: &Form) -> Form {
        a.add(b).expect("small")
    }

    #[test]
    fn roots_multiply_and_cancel() {
        assert_eq!(times(&root(6), &root(10)), times(&n(2), &root(15)));
        assert_eq!(root(12), times(&n(2), &root(3)));
        assert_eq!(times(&root(8), &root(2)), n(4));
        assert_eq!(root(49), n(7));
        assert_eq!(sum(&root(5), &root(20).neg()), root(5).neg());
        let golden = sum(&n(1), &root(5));
        assert_eq!(times(&golden, &golden.inverse().expect("not zero")), n(1));
        let third = n(3).inverse().and_then(|x| x.apply(Function::Root)).expect("small");
        assert_eq!(times(&third, &root(3)), n(1));
        assert_ne!(root(2), root(3));
    }

    #[test]
    fn nested_roots_exponentials_and_gelu_follow_their_rules() {
        let inner = sum(&n(3), &root(2));
        let nested = inner.apply(Function::Root).expect("small");
        assert_eq!(times(&nested, &nested), inner);
        assert_eq!(times(&nested, &nested.inverse().expect("not zero")), n(1));
        let exp = |x: &Form| x.apply(Function::Exp).expect("small");
        assert_eq!(times(&exp(&root(2)), &exp(&root(2).neg())), n(1));
        assert_eq!(times(&exp(&n(2)), &exp(&n(3))), exp(&n(5)));
        for function in [Function::Gelu, Function::GeluTanh] {
            let gelu = |x: &Form| x.apply(function).expect("small");
            assert_eq!(sum(&gelu(&root(3)), &gelu(&root(3).neg()).neg()), root(3));
        }
    }

    #[test]
    fn a_reciprocal_of_a_sum_is_a_factor() {
        let total =
            [1, 2, 3].iter().fold(Form::ZERO, |s, &x| sum(&s, &n(x).apply(Function::Exp).expect("small")));
        let inverse = total.inverse().expect("not zero");
        assert_eq!(
            times(&n(2), &total).inverse().expect("not zero"),
            times(&inverse, &n(2).inverse().expect("2"))
        );
        assert_eq!(inverse.inverse().expect("not zero"), total);
    }

    #[test]
    fn what_grows_is_given_up() {
        let many = (1..200).try_fold(Form::ZERO, |s, x| s.add(&n(x).apply(Function::Exp)?));
        assert_eq!(many, None);
    }
}
