//! Embeddings, stored with one byte per value.

/// The vector's direction: a scale and values of one byte. `None` for a vector without a direction: empty, all zeros,
/// or with a value that is not a number.
pub(crate) fn quantized(vector: &[f32]) -> Option<(f32, Vec<i8>)> {
    let vector = unit(vector)?;
    let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    let scale = largest / 127.0;
    if scale <= 0.0 {
        return None;
    }
    Some((scale, vector.iter().map(|value| (value / scale).round() as i8).collect()))
}

/// The vector with length 1.
pub(crate) fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if !vector.iter().all(|value| value.is_finite()) || largest <= 0.0 {
        return None;
    }
    // Divided by the largest first, so that no square overflows or vanishes.
    let length = vector.iter().map(|value| (value / largest).powi(2)).sum::<f32>().sqrt();
    Some(vector.iter().map(|value| value / largest / length).collect())
}

/// The cosine of a query (in whole numbers from -127 to 127, see [`quantized`]) and a stored vector. The query's numbers
/// have two bytes, because processors multiply those fastest.
pub(crate) fn cosine(query: &[i16], query_scale: f32, values: &[u8], scale: f32) -> f32 {
    let dot: i32 =
        query.iter().zip(values).map(|(&a, &b)| i32::from(a) * i32::from(i16::from(b as i8))).sum();
    let cosine = dot as f32 * query_scale * scale;
    if cosine.is_finite() { cosine.clamp(-1.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_keeps_its_direction() {
        let (scale, values) = quantized(&[3.0, 4.0, 0.0]).unwrap();
        let stored: Vec<u8> = values.iter().map(|value| *value as u8).collect();
        let wide = |values: &[i8]| values.iter().map(|value| i16::from(*value)).collect::<Vec<_>>();
        assert!((cosine(&wide(&values), scale, &stored, scale) - 1.0).abs() < 0.01);
        let (other_scale, other) = quantized(&[-4e30, 3e30, 0.0]).unwrap();
        assert!(cosine(&wide(&other), other_scale, &stored, scale).abs() < 0.02);
    }

    #[test]
    fn a_vector_without_a_direction_is_left_out() {
        for vector in [&[][..], &[0.0, 0.0], &[f32::NAN, 1.0], &[f32::INFINITY]] {
            assert_eq!(quantized(vector), None);
        }
    }
}
