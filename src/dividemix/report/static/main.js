// The order in which the page comes to life.

showOverview();
showTraining();
showLosses();
showNoise(showPair);
showQuality();
showReview();
