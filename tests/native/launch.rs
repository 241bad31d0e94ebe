//! Launches as a file, which `host.cpp` reads.

use ulpian_kernels::{Launch, OPERANDS};

/// Appends a launch to a file of launches.
pub(crate) fn write(launch: &Launch, file: &mut Vec<u8>) {
    let mut number = |n: i64, data: &[u8]| {
        file.extend(n.to_le_bytes());
        file.extend(data);
    };
    number(launch.kernel.len() as i64, launch.kernel.as_bytes());
    number(launch.result_bytes() as i64, &[]);
    assert!(launch.operands.len() <= OPERANDS, "{}", launch.kernel);
    for i in 0..OPERANDS {
        match launch.operands.get(i).and_then(Option::as_ref) {
            Some(data) => number(data.len() as i64, data),
            None => number(-1, &[]),
        }
    }
    let sizes: Vec<u8> = launch.sizes.iter().flat_map(|n| n.to_le_bytes()).collect();
    let scalars: Vec<u8> = launch.scalars.iter().flat_map(|x| x.to_le_bytes()).collect();
    number(sizes.len() as i64, &sizes);
    number(scalars.len() as i64, &scalars);
}
