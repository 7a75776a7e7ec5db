use std::collections::HashMap;
fn main() {
    let n: usize = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(2_000_000);
    let mut composite = vec![false; n + 1];
    let mut primes: Vec<u32> = Vec::new();
    for i in 2..=n {
        if composite[i] { continue; }
        primes.push(i as u32);
        let mut j = i * i;
        while j <= n { composite[j] = true; j += i; }
    }
    let mut gaps: HashMap<u32, u32> = HashMap::new();
    for w in primes.windows(2) { *gaps.entry(w[1] - w[0]).or_insert(0) += 1; }
    let mut list: Vec<_> = gaps.into_iter().collect();
    list.sort();
    println!("{} {:?}", primes.len(), list);
}
