"""Human evaluation: pages for annotators, their answers, and agreement."""
